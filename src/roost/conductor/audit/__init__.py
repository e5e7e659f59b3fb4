"""The audit: claims, mappings and instances are compared all the time, and repaired where it is certain.

    audit_reads         reads claims, mappings and rows of some instances, and compares them
    places              hosts and aggregates in placement and in the cells, compared
    findings            observed differences, and the repair of each: pure
    repairs             the repairs, each a write that fails if its subject has changed since
    rounds              the rounds: all instances in small steps, a second look, the repairs
    operations          the operations of ``/v1/audit``, their handlers and policy rules
    types               their bodies and queries

Rounds, findings and repairs are stored by `roost.state.api_database.audit`. Of all super conductors one holds
its lease `LEASE`. A difference is a finding when a second look, half a minute later, sees exactly the same:
the same generation of the consumer, the same mapping, the same row. Nothing is repaired unless all hosts
concerned have shown a sign of life between the two looks, nor if the round has more repairs than
`AuditOptions.most_repairs`: then an operator is asked.
"""

"""The audit: claims, mappings and instances are compared all the time, and repaired where it is certain.

    looking       reads claims, mappings and rows of some instances, and compares them
    findings      what is observed, and what is to be done about it: pure
    repairing     the repairs, each a write that fails if its subject has changed since
    rounds        the machine: all instances in small steps, a second look, the repairs
    store         rounds, findings and repairs in the API database
    operations    the rows of ``/v1/audit``; handlers, types: what they do, and their bodies

Of all super conductors one holds the lease `LEASE`. A difference is a finding when a second look, half a
minute later, sees exactly the same: the same generation of the consumer, the same mapping, the same row.
Nothing is repaired unless all hosts concerned have shown a sign of life between the two looks, nor if the
round has more repairs than `AuditOptions.most_repairs`: then an operator is asked.
"""

"""Conductors: they carry out what was asked for, and decide when to try again.

    super_conductor   accepts requests durably, asks the scheduler, hands instances to cells
    cell_conductor    one for each cell: on failure swaps the claim to the next alternate; frees claims
    backoff           how often work that failed is tried again, and after which pauses
    questions         what conductors ask the scheduler and placement, and who answers
    asking_cells      how lists ask cells, one of which may be down
    requests          build requests and cell mappings, in the API database
    http              all operations of a conductor; instances over HTTP, their bodies in instance_types
    requester         the project and user of a request
    aggregates/       host aggregates and availability zones: the entity, over HTTP, and in placement
    server_groups/    server groups, the instances that were requested for each, and both over HTTP
    possible_cells    the cells that instances may be in, by their mappings
    together          several things at the same time, all of them to their end
    tables            their tables
    node_feed         what the agents of all cells report, brought to the scheduler's node table

Retry policy lives here: ``max_attempts`` hosts are tried for an instance. The scheduler only hears how
many alternates are wanted. Every step can be repeated; what a crash interrupts is resumed from the
databases.
"""

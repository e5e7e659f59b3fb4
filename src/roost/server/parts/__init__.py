"""The parts of processes: each checks its options, prepares its databases, opens, and tells when it is ready.

placement    a ledger or a placement service over HTTP, and the Placement API
databases    the records, the API database, and the databases of cells
scheduler    the hosts, the scheduler and its API
conductors   the conductors of cells, the super conductor with its aggregates, and its API
agents       the endpoint of a cell's agents
nova         the bridge to Nova: its database, hosts and calls
nova_upkeep  the bridge beside its calls: the audit of claims, and the ends of attempts
nova_shadow  its shadow mode: calls are compared and not answered
neighbours   the small service of ports and accelerators
"""

"""The scheduler of an existing Nova cloud: `roost nova-scheduler` takes the place of nova-scheduler.

Nova's API, conductors, computes, databases and broker stay as they are. A call of Nova's conductor passes:

    rpc (oslo.messaging) ─▶ decisions ─▶ roost.scheduler ─▶ ledger or placement
                               ▲
    feed (Nova's databases) ───┘

calls            the calls and casts of Nova, and the errors that Nova knows
decisions        from a call to its answer: the claim of an instance that holds something, errors as Nova's
instance_facts   the facts of an instance that decide if its claim may stand beside another
instance_source  the same, read in the databases of all cells
options          the bridge's own options, and those of nova.conf that it reads
networks         the segments of networks and ports, read from Neutron

feed             keeps the node table up to date from Nova's databases
cell_feed        the nodes of one cell: which rows are read when
instance_lists   the instances on each host, and the hosts where they have changed
settlement       the end of outstanding claims, by the rows of their instances
arrivals         instances that have arrived at a node whose row may be older
liveness         the compute services that are up
host_aggregates  the host aggregates, whose members are hosts in Nova and nodes here
host_mappings    the hosts that Nova's conductor cannot send instances to
read_rounds      reads that are made together, where one that hangs holds up no other
reports          the report of a node, made of its row
database/        Nova's databases: the tables and rows that are read

releases  the releases of Nova, and the check of its databases and services against them
broker    the addresses of the message broker
shadow/   shadow mode: copies of calls are decided without a claim, and compared with Nova's claims
rpc/      the calls and casts over oslo.messaging
service_row  the row of this scheduler among Nova's services: its signs of life

audit/        finds claims that nobody answered for, reports them, and frees them by option
attempts      follows the open attempts in the records until Nova's databases tell their end
attempt_ends  the end of an attempt, judged by Nova's rows of its instance
"""

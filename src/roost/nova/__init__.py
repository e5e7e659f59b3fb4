"""The scheduler of an existing Nova cloud: `roost nova-scheduler` takes the place of nova-scheduler.

Nova's API, conductors, computes, databases and broker stay as they are. A call of Nova's conductor passes:

    rpc (oslo.messaging) ─▶ decisions ─▶ roost.scheduler ─▶ ledger or placement
                               ▲
    feed (Nova's databases) ───┘

calls    the calls and casts of Nova, and the errors that Nova knows
options  the bridge's own options, and those of nova.conf that it reads
"""

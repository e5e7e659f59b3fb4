"""Where the hosts of a run come from: three sources with the same decisions on CPU, memory and disk.

placement   allocation candidates of a placement service: `roost.scheduler.gateways` (the default)
reported    all nodes of the cells' databases, by the amounts that they report; nothing is written
switching   takes `reported` while computes are too old to report to placement, else placement
filling     refusals while nodes report of which placement has no providers yet
cached      answers of placement over HTTP that serve for some seconds (the caching scheduler)
"""

"""Host pool: the hosts that one run may choose from, and their weights.

host_pool      the protocol
fresh_pool     filters and weighs all hosts of a candidate source; `roost.scheduler.cache` has the cached pool
judged_pool    the same, with the verdict on each host
weights        one weight for each host, kept right from claim to claim
"""

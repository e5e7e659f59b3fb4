"""The equivalence cache: results kept between decisions for requests that are alike.

Most requests belong to few *equivalence classes*: they have the same query, and the same keys by which
filters read a request. Between two requests of a class few hosts change. So each class keeps the hosts that
it allows, bounds of their weights, and its position in the logs of changes; a decision judges again what has
changed.

    fleet.invalidations ┐                    ┌▶ EquivalenceClass, one for each kind of request:
    table.invalidations ┴▶ HostIndex, all ───┤    feasibility   hosts that can serve the query
                           hosts, whatever   │    stage         number of its filters that each host passes
                           is requested      │    ValueRange    least and greatest number of each weigher
                                             │    ScoreIndex    the best host, of all or of one cell
                                             └▶ CachedPool, the host pool of one run, on the class or on
                                                Narrowed, the class as one request sees it

equivalence_cache  the classes of a scheduler, the least recently used are dropped; the host pool of one run
plugin_roles       the role of each plugin in a request: silent, cached, cached by a key of many values, asked
equivalence_class  the allowed hosts of one kind of request, and the mask by which one request excludes some
narrowed           a class narrowed for one request, by named hosts and by other plugins
plugin_answers     numbers and masks of plugins that are asked for one request
feasibility        hosts that can serve the queries: by their roots alone, as trees, or any of several queries
host_index         the state of all hosts that every class shares: totals, weighers' numbers, filters' masks
host_columns       the place of each host in columns, cell by cell, in blocks; capacity and use of its tree
score_index        weights of the allowed hosts, exact where the best host may be; bounds elsewhere
value_range        least and greatest number of each weigher over the allowed hosts
weights            weights from numbers; those of all hosts, and the highest of each block

A decision reads top to bottom: `EquivalenceCache.pool` brings the host index up to date, which computes the
changed places again and logs them for the classes; finds the class by query and keys, which reads that log;
and narrows it if the request has what the class does not know. The run then asks the score index for the best
host, claims, and goes on with what the claim has changed. A change that a batch of the ledger makes and takes
back is a change like any other.

The results equal those of `roost.scheduler.pool.fresh_pool.FreshPool` to the last bit: tests compare both.
Where a weight is not a number, or a plugin fails on some host, `FreshPool` is used.
"""

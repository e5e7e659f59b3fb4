"""The equivalence cache: results kept between decisions for requests that are alike.

    fleet.invalidations ┐                    ┌▶ EquivalenceClass, one for each kind of request:
    table.invalidations ┴▶ HostIndex, all ───┤    feasibility   hosts that can serve the query
                           hosts, whatever   │    ValueRange    least and greatest number of each weigher
                           is requested      │    ScoreIndex    the best host, of all or of one cell
                                             └▶ CachedPool, the host pool of one run

equivalence_cache  the classes of a scheduler; the least recently used ones are dropped
cached_pool        the host pool of a run that begins from a class
equivalence_class  the allowed hosts of one kind of request, and how many hosts each step leaves
narrowed           a class narrowed for one request, by named hosts and by other plugins
plugin_roles       the role of each plugin in a request: silent, cached, or asked
verdicts           the masks of filters whose key has many values
feasibility        hosts that can serve the queries, by their roots alone or as trees
host_index         the state of all hosts that every class shares: totals, weighers' numbers, filters' masks
host_columns       the place of each host in columns, cell by cell, in blocks; capacity and use of its tree
weigher_columns    the numbers of weighers by place: cached ones, and those asked for one request
value_range        least and greatest number of each weigher over the allowed hosts
weights            weights from numbers; those of all hosts, and the highest of each block
score_index        weights of the allowed hosts, exact where the best host may be; bounds elsewhere

The invalidation logs of fleet and node table name the rows that changed and the hosts that reported. The host
index computes these places again and appends them to an invalidation log of its own; each class reads that
log when it is used next. A change that a batch of the ledger makes and takes back is a change like any other.

The results equal those of `roost.scheduler.pool.fresh_pool.FreshPool` to the last bit: tests compare both.
Where a weight is not a number, or a plugin fails on some host, `FreshPool` is used.
"""

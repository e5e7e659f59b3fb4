"""The equivalence cache: results kept between decisions for requests that are alike.

    fleet.invalidations ┐                    ┌▶ EquivalenceClass, one for each kind of request:
    table.invalidations ┴▶ HostIndex, all ───┤    feasibility   hosts that can serve the query
                           hosts, whatever   │    ValueRange    least and greatest number of each weigher
                           is requested      │    ScoreIndex    the best host, of all or of one cell
                                             └▶ CachedPool, the host pool of one run

equivalence_cache  the classes of a scheduler; the least recently used ones are dropped
equivalence_class  the allowed hosts of one kind of request, and how many hosts each step leaves
host_index         the state of all hosts that every class shares: totals, weighers' numbers, filters' masks
host_entry         the values of one host in plain Python, until it changes
layout             the place of each host in the columns: cell by cell, in blocks
totals             capacity and use of the whole tree of each host
flat_feasibility   hosts that can serve a query, by their roots alone or as trees
any_feasibility    hosts that can serve any of several queries
score_index        weights of the allowed hosts, exact where the best host may be; bounds elsewhere
block_scores       weights of all hosts by all weighers together, and the highest of each block
value_range        least and greatest number of each weigher over the allowed hosts
scales             weights from numbers: normalisation and multipliers
columns            the numbers of weighers by place; own_columns: those of weighers asked for one request
roles              the role of a filter in a request: silent, cached, or asked
plugin_parts       the roles of all plugins in one request, by their keys
verdicts           the masks of filters whose key has many values
excluded_hosts     a class without the few hosts that one request excludes by name; nothing is copied
narrowed           a class narrowed for one request, by other plugins or many hosts
stage_mask         the hosts that a narrowed class leaves, and their number after each filter
cached_pool        the host pool of a run that begins from a class

The invalidation logs of fleet and node table name the rows that changed and the hosts that reported. The host
index computes these places again and appends them to an invalidation log of its own; each class reads that
log when it is used next. A change that a batch of the ledger makes and takes back is a change like any other.

The results equal those of `roost.scheduler.pool.fresh_pool.FreshPool` to the last bit: tests compare both.
Where a weight is not a number, or a plugin fails on some host, `FreshPool` is used.
"""

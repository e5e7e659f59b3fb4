"""What is kept from one decision to the next, so that a decision costs what has changed and not the fleet.

    fleet.invalidations ┐                              ┌─ Serving   which hosts can serve the query
    table.invalidations ┴▶ Board ▶ Shape (one for each ┼─ Extremes  least and greatest of each weigher
                           (all    kind of request)    └─ Ranks     the best host, of all or of a cell
                           hosts)       │
                           Keeper ──────┴──▶ KeptField, on which `roost.scheduler.selection.selection` works

    layout    where each host stands: cell by cell, in blocks
    totals    what each host has and uses
    serving   which hosts can serve a query, by their roots alone or as trees; any_serving: several queries
    known     what is known of a single host until it is touched
    roles     which filters are asked, and whose answers are kept
    judging   the parts of all plugins in one request, by their keys
    verdicts  the answers of filters whose key has many values
    excluding a shape without the few hosts that one request names: nothing is copied
    narrowed  a shape narrowed for one request: play (hosts left out), own_columns and columns (more weighers)
    scales    weights from numbers; joint: those of all hosts
    board     what is known of all hosts, whatever is asked: totals, numbers of weighers, answers of filters
    shape     what is known for one kind of request: who is allowed, and how many each step left
    keeper    the shapes, the least recently used of which are dropped

A fleet says which rows were touched, a node table which hosts reported something new (their invalidation
logs). The board looks at those rows again, appends their places to an invalidation log of its own, and each
shape looks at these when it is used next. Changes that are made and taken back within a batch of the ledger
are changes like any.

The answers are those of `roost.scheduler.pool.fresh_pool.FreshPool`, to the last bit: tests compare
them. Where weights are no numbers, or a plugin fails on some host, that one is used.
"""

"""The fleet: the whole inventory in memory, and every question asked of it.

    fleet          providers, trees, traits, aggregates; changes applied and undone; fork
    stock          inventories and use of one resource class, as compact columns
    journal        which rows were touched, for whoever keeps what it has found out about them
    filling        a fleet from whole columns, as they come out of tables
    rowset         the providers with one trait or in one aggregate
    fits           the one judge of whether an amount fits an inventory
    match          the providers that can serve one request group
    candidates     whole allocation candidates: one provider, trees, sharing, granular groups
    terms          what each provider of a candidate must serve, and the providers that could
    layout         what the walk over a tree hangs on, equal for trees that are alike
    walk           the search for combinations within one tree, made once for trees that are alike
    constraint     the constraints of a query one by one: named, added, left out
    explain        how many trees each constraint of a query leaves; in full by way of
                   judging, removals (providers and trees, alone and in order) and misses (what is nearest)
    totals         what whole trees have and use, for weighing hosts

Pure: numpy in, numpy out; no I/O, no clock, no randomness.

Words: a *row* is a provider's number, a *slot* a provider's place in one class's stock, a *root* the row
at the top of a tree, an *anchor* the root of the tree that a candidate belongs to.
"""

from roost.fleet.errors import FleetError, Inconsistent, UnknownProvider
from roost.fleet.fleet import Fleet

__all__ = ["Fleet", "FleetError", "Inconsistent", "UnknownProvider"]

"""How queries share a process with writes, so that no number of queries keeps claims from their commits.

    pacing     the share of time that queries may take, as a pure value
    turns      queries that wait for their share, first come, first served
    forked     a function in a forked process, with limits of time and memory
    budget     what a query goes through: its share, the count of its work, a process of its own

A query is computed in the event loop in one piece, on the exact state that it reads. A cheap one takes a few
milliseconds. Such queries take turns, and wait if they have had their share of the time, which is small while
writes are under way.
A query that turns out to be expensive, by a count of its work, is computed in a forked process: the fork has
the fleet as it was at that moment, for a few milliseconds, and the operating system schedules it.
"""

from roost.placement.queries.budget import QueryBudget, TooExpensive

__all__ = ["QueryBudget", "TooExpensive"]

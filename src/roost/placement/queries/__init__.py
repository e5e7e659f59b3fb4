"""Queries share a process with writes, in such a way that no number of queries delays the commits of claims.

    turns          queries that wait for their share, first come, first served
    forked         a function in a forked process, with limits of time and memory
    forked_turns   work in forked processes that is done piece by piece beside a writer
    forked_worker  a forked process that stays and answers messages
    budget         the way of a query: its share of time, the count of its work, a process of its own

A query is computed in the event loop in one piece, on the exact state that it reads. A cheap query takes a
few milliseconds. Such queries take turns, and wait if they have used up their share of the time, which is
small while writes are under way.

A query that turns out to be expensive, by a count of its work, is computed in a forked process. The fork
takes a few milliseconds, has the fleet as it was at that moment, and is scheduled by the operating system.
"""

from roost.placement.queries.budget import QueryBudget, TooExpensive

__all__ = ["QueryBudget", "TooExpensive"]

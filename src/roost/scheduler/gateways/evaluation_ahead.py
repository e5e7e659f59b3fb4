"""Evaluates the trees of a fleet for a new query, before the decision.

The evaluation takes 60 µs for each tree that is like no other: a tenth of a second in a region of odd hosts.
Within the decision it would hold the ledger's writer, and with it everything else in the process, for that
long. Ahead of the decision it is made in parts, with pauses between them for other tasks. The results are
cached beside the fleet, where the decision finds them and applies the changes since then.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from roost.fleet.feasibility import feasibilities
from roost.ledger import Ledger
from roost.model.request import CandidateQuery

UNITS: Final = 20_000
"""Units of work of one part: some 10 ms."""

MOST_UNITS: Final = 80_000
"""Units of work of the longest part, where shorter ones make no progress: some 40 ms, twice that in a search.

A query that needs more is left to the decision, whose own limit tells whether it is too much.
"""


class EvaluationAhead:
    """Evaluates queries on the fleet of a ledger, one query at a time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._turn = asyncio.Lock()

    async def evaluate(self, queries: Sequence[CandidateQuery]) -> None:
        """Evaluate the trees for the queries that are not evaluated yet."""
        if not self._ledger.tentative().has_trees:
            return
        for query in queries:
            if not self._is_done(query):
                async with self._turn:
                    await self._in_parts(query)

    def _is_done(self, query: CandidateQuery) -> bool:
        return feasibilities(self._ledger.tentative()).is_evaluated(query)

    async def _in_parts(self, query: CandidateQuery) -> None:
        units, reached = min(UNITS, MOST_UNITS), -1
        while units and not self._is_done(query):
            now = feasibilities(self._ledger.tentative()).evaluate(query, units)
            await asyncio.sleep(0)
            if now is None or (now <= reached and units == MOST_UNITS):
                break
            if now <= reached:
                units = min(2 * units, MOST_UNITS)
            reached = max(now, reached)

"""Recorded decisions that are made again, as they were and without each of their conditions.

It is done in a forked process, on the fleet as it is there, moved back through the commits since, and on the
node table from its journal. What the process needs of databases is read before the fork.
"""

import asyncio
from collections import OrderedDict
from typing import Final

import msgspec

from roost.ledger import Ledger
from roost.ledger.past_fleet import HistoryMissing, commits_after
from roost.placement.queries.forked import ForkedError
from roost.placement.queries.forked_turns import ForkedTurns
from roost.records import RunWithAttempts
from roost.scheduler.explain.explainer import MORE_BYTES, SHARE
from roost.scheduler.explain.survey import TimeLimit
from roost.scheduler.replay import NotReproducible
from roost.scheduler.replay.counterfactuals import Redecided, redecided
from roost.scheduler.replay.histories import RememberedFleet, RememberedNodes
from roost.state.api_database.node_journal import (
    JournalMissing,
    JournalTooShort,
    NodeJournals,
    Stored,
    journal_too_short,
)
from roost.storage import Database
from roost.web.errors import Unavailable

MOST_WAITING: Final = 4
"""Decisions that are made again or wait for it. Further ones are refused."""
MOST_COMMITS: Final = 100_000
"""Commits that are undone at most: some seconds."""
MOST_BATCHES: Final = 10_000
"""Batches of a node journal that are read at most."""
JOURNAL_SECONDS: Final = 5.0
"""Seconds that a decision waits for the journal of its node table to be written."""
SECONDS: Final = 15.0
"""Seconds after which nothing further is decided without."""
SECONDS_MORE: Final = 15.0
"""Further seconds for which a process may run."""
MOST_KEPT: Final = 64
"""Answers that are kept: the past does not change."""


class _Impossible(msgspec.Struct, frozen=True, tag=True):
    why: str


class _Made(msgspec.Struct, frozen=True, tag=True):
    made: Redecided


_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[_Impossible | _Made] = msgspec.msgpack.Decoder(_Impossible | _Made)


class Redecisions:
    """Makes decisions of a ledger again. ``nodes``: the database with the node journals."""

    def __init__(self, ledger: Ledger, nodes: Database) -> None:
        self._ledger = ledger
        self._journals = NodeJournals(nodes)
        self._kept: OrderedDict[str, Redecided] = OrderedDict()
        self._turns = ForkedTurns(MOST_WAITING, SECONDS + SECONDS_MORE, MORE_BYTES, SHARE)

    async def again(self, recorded: RunWithAttempts) -> Redecided:
        """Make a decision again.

        Raises:
            NotReproducible: it cannot be made again.
            Unavailable: too many wait, or it takes too much time or memory.
            StorageError, LedgerError: a database cannot be read.
        """
        kept = self._kept.get(recorded.run.id)
        if kept is None:
            if self._turns.full:
                raise Unavailable("Too many decisions wait to be made again: try again in a moment.")
            async with self._turns.turn():
                kept = self._kept.get(recorded.run.id)
                if kept is None:
                    found = await self._made(recorded)
                    if isinstance(found, _Impossible):
                        raise NotReproducible(found.why)
                    kept = self._kept[recorded.run.id] = found.made
                    if len(self._kept) > MOST_KEPT:
                        self._kept.popitem(last=False)
        return kept

    async def _made(self, recorded: RunWithAttempts) -> _Impossible | _Made:
        run = recorded.run
        if run.version is None:
            return _Impossible("its record names no version of a ledger in this process")
        tap = self._ledger.tap()
        try:
            nodes = await self._nodes(recorded)
            head = (await self._ledger.current()).version
            if head - run.version > MOST_COMMITS:
                raise NotReproducible(
                    f"{head - run.version:,} commits have come since, too many to be undone here: "
                    "roost replay-decision makes it again"
                )
            commits = await commits_after(self._ledger.database, run.version, head)
            if tap.broken:
                raise Unavailable("Too many commits came meanwhile: try again.")
            commits.update((each.seq, each.changes) for each in tap.take())
            fleet = self._ledger.known()

            def work() -> bytes:
                return _encode(_again(RememberedFleet(fleet.fork(), commits), nodes, recorded))

            return _decoder.decode(await self._turns.run(work))
        except (NotReproducible, HistoryMissing, JournalMissing) as error:
            return _Impossible(str(error))
        except ForkedError as error:
            raise Unavailable(f"The decision could not be made again: {error}.") from error
        finally:
            tap.close()

    async def _nodes(self, recorded: RunWithAttempts) -> RememberedNodes:
        """Read a node table's journal up to a decision, which may be about to be written.

        Raises: `JournalMissing`, `NotReproducible`.
        """
        time_limit = TimeLimit(JOURNAL_SECONDS)
        while True:
            try:
                return await self._journal(recorded)
            except JournalTooShort:
                if time_limit.over():
                    raise
                await asyncio.sleep(0.2)

    async def _journal(self, recorded: RunWithAttempts) -> RememberedNodes:
        run = recorded.run
        if run.journal is None or run.node_version is None or run.asked is None:
            raise JournalMissing("the record names no version of a node journal")
        asked = run.asked.node_version
        first = run.node_version if asked is None else min(asked, run.node_version)
        base = await self._journals.base(run.journal, first)
        batches: list[Stored] = []
        while (batches or [base])[-1].last < run.node_version:
            more = await self._journals.after(run.journal, (batches or [base])[-1].batch)
            batches += more
            if not more:
                raise journal_too_short(run.journal, (batches or [base])[-1].last, run.node_version)
            if len(batches) > MOST_BATCHES:
                raise NotReproducible("its node journal is too long to be read here")
        return RememberedNodes(run.journal, base, batches)


def _again(fleet: RememberedFleet, nodes: RememberedNodes, recorded: RunWithAttempts) -> _Impossible | _Made:
    """Make a decision again. For a forked process."""
    try:
        return _Made(redecided(fleet, nodes, recorded, TimeLimit(SECONDS).over))
    except NotReproducible as error:
        return _Impossible(str(error))

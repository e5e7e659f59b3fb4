"""Operators' words as one scheduler has taken them in, and whether a decision may still stand by them.

What operators say (hosts, nodes and cells enabled or disabled, host aggregates) is in tables that the ledger
does not have. Why not read them for each decision: words are rare, and a read costs as much as the decision.
So whoever says something first writes it into the tables, and then announces it by a commit. A decision on
the ledger names the announcement that the node table had taken in when the request was turned into queries;
on a state with another announcement it is refused (`NewerWord`), the table takes in what is new, and the
request is decided anew. A claim is therefore committed either before the announcement, or by what was said.

Placement over HTTP has no such commits. There a run looks at the tables before it asks for hosts and after it
has claimed them, and gives back what it should not have claimed.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from roost.model.node_event import MembershipsSet, NodeEvent, WordSaid
from roost.model.operator_word import Subject

ReadWords = Callable[[], Awaitable[Sequence[NodeEvent]]]
"""Brings the node table up to date with what operators have said; returns the events of what was new. Raises
`StorageError`, and then nothing has changed."""

KEPT = 1_000
"""Events that are kept for runs under way. A run that began before them is decided anew."""


class Taken(NamedTuple):
    """The position of a node table: the mark of the announcement, and the number of events so far."""

    mark: int = 0
    events: int = 0


class OperatorWords:
    """Keeps a node table up to date with operators' words, for the runs of one scheduler.

    All reads go through it: a word that somebody else took in would be none that came during a run.

    ``taken``: what the table has now. A word may be in it before it is announced.
    """

    def __init__(self, read: ReadWords) -> None:
        self.taken = Taken()
        self._read = read
        self._newest: deque[NodeEvent] = deque(maxlen=KEPT)
        self._turn = asyncio.Lock()
        # The numbers of the last read that began and of the last that ended, and the error of that one.
        self._begun = 0
        self._ended = 0
        self._failure: Exception | None = None

    async def take(self, mark: int) -> None:
        """Take in all that was said before the announcement ``mark``. Raises `StorageError`."""
        async with self._turn:
            if self.taken.mark != mark:
                await self._take()
                self.taken = self.taken._replace(mark=mark)

    async def look(self) -> None:
        """Take in all that was said before this call. Calls at the same time share a read.

        Raises `StorageError`.
        """
        before = self._begun
        async with self._turn:
            # A read that began while this call waited has seen all that the call is to see, or would fail for
            # it as well. One that was cancelled has not ended.
            if self._ended <= before:
                await self._take()
            elif self._failure is not None:
                raise self._failure

    async def _take(self) -> None:
        self._begun += 1
        try:
            events = await self._read()
        except Exception as error:
            self._ended, self._failure = self._begun, error
            raise
        self._ended, self._failure = self._begun, None
        self._newest.extend(events)
        self.taken = self.taken._replace(events=self.taken.events + len(events))

    def concern(self, since: Taken, subjects: Iterable[Subject]) -> bool:
        """Return whether something that was said since may matter to a claim on some nodes.

        ``subjects``: the nodes, with their hosts and cells. Metadata of an aggregate matter to all.
        """
        number = self.taken.events - since.events
        if number > len(self._newest):
            return True
        nodes = set(subjects)
        concerned = {Subject(*each[:length]) for each in nodes for length in (1, 2, 3)}
        names = {each.node for each in nodes}
        newest = list(self._newest)[len(self._newest) - number :]
        return any(_matters(event, concerned, names) for event in newest)


def _matters(event: NodeEvent, concerned: set[Subject], nodes: set[str]) -> bool:
    if isinstance(event, WordSaid):
        return Subject(event.cell, event.host, event.node) in concerned
    return not isinstance(event, MembershipsSet) or event.node in nodes

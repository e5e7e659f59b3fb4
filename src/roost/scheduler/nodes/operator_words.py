"""The operators' words that one scheduler has taken in, and a check of its decisions against newer words.

Operators' words (hosts, nodes and cells enabled or disabled, host aggregates) are in tables outside of the
ledger. They are not read for each decision: words are rare, and a read costs as much as the decision. So an
operator's word is first written into the tables, and then announced by a commit. A decision on the ledger
names the announcement that the node table had taken in when the queries of the request were made. On a state
with another announcement the decision is refused (`NewerWord`), the table takes in the new words, and the
request is decided anew. Each claim is therefore committed before the announcement, or respects the new word.

Placement over HTTP has no such commits. There a run reads the tables before it asks for hosts and after it
has claimed them, and gives back claims that contradict a new word.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from roost.model.node_event import MembershipsSet, NodeEvent, WordSaid
from roost.model.operator_word import Subject
from roost.scheduler.errors import BadRequestSpec, NewerWord, WordsInTheWay

ReadWords = Callable[[], Awaitable[Sequence[NodeEvent]]]
"""Brings the node table up to date with operators' words; returns the events of new ones. Raises
`StorageError`, and then nothing has changed."""

KEPT = 1_000
"""Newest events that are kept for runs under way. A run that began before them is decided anew."""


ROUNDS = 20
"""Times that a request is decided anew because of operators' words. Then it fails, to be tried again."""

T = TypeVar("T")


class TakenWords(NamedTuple):
    """The words that a node table has taken in: mark of the announcement, and number of events so far."""

    mark: int = 0
    events: int = 0


class OperatorWords:
    """Keeps a node table up to date with operators' words, for the runs of one scheduler.

    All reads of words go through it, so that it sees each word that comes during a run.

    ``taken``: the words that the table has now. A word may be in it before it is announced.
    """

    def __init__(self, read: ReadWords) -> None:
        self.taken = TakenWords()
        self._read = read
        self._newest: deque[NodeEvent] = deque(maxlen=KEPT)
        self._turn = asyncio.Lock()
        # The numbers of the last read that began and of the last that ended, and the error of the latter.
        self._begun = 0
        self._ended = 0
        self._failure: Exception | None = None

    async def take(self, mark: int) -> None:
        """Take in all words up to the announcement ``mark``. Raises `StorageError`."""
        async with self._turn:
            if self.taken.mark != mark:
                await self._take()
                self.taken = self.taken._replace(mark=mark)

    async def look(self) -> None:
        """Take in all words said before this call. Calls at the same time share a read.

        Raises `StorageError`.
        """
        before = self._begun
        async with self._turn:
            # A read that began while this call waited has seen all words before the call, or has failed as
            # one for this call would. A cancelled read has not ended.
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

    def concern(self, since: TakenWords, subjects: Iterable[Subject]) -> bool:
        """Return whether a word said since ``since`` may matter to a claim on some nodes.

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


DecideByWords = Callable[[TakenWords | None, Mapping[str, int]], Awaitable[T]]
"""Decides by the words that the table has, None without operators.

The second argument: generations that instances which held something have reached in the rounds before.
"""


async def by_the_newest_words(words: OperatorWords | None, decide: DecideByWords[T]) -> T:
    """Decide until no operator has said anything meanwhile. Raises `WordsInTheWay`.

    The newest words are read before a request is refused as wrong: its availability zone may be new.
    """
    generations: Mapping[str, int] = {}
    for _ in range(ROUNDS):
        taken = None if words is None else words.taken
        try:
            return await decide(taken, generations)
        except BadRequestSpec:
            if words is None or taken is None:
                raise
            await words.look()
            if words.taken.events == taken.events:
                raise
        except NewerWord as newer:
            generations = {**generations, **newer.generations}
            if words is not None and newer.mark is not None:
                await words.take(newer.mark)
    raise WordsInTheWay(f"operators said something {ROUNDS} times while the request was decided: try again")


def _matters(event: NodeEvent, concerned: set[Subject], nodes: set[str]) -> bool:
    if isinstance(event, WordSaid):
        return Subject(event.cell, event.host, event.node) in concerned
    return not isinstance(event, MembershipsSet) or event.node in nodes

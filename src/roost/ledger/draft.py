"""A draft: the outcomes of a batch's commands, and the commit that would make their changes durable."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from roost.fleet import Fleet
from roost.ledger.holdings import Holdings
from roost.ledger.projection import ConsumerIds, Statement, project
from roost.ledger.state import Command, State
from roost.model.change import AllocationsChanged, Change, GenerationChanged, WordAnnounced
from roost.process.lane import awaitable
from roost.process.logs import RequestIds
from roost.process.tracing import Here

T = TypeVar("T")

_OF_CLAIMS = (AllocationsChanged, GenerationChanged, WordAnnounced)
"""The kinds of changes that neither add, remove nor rename providers, resource classes or traits."""

BATCH_SECONDS = 0.1
"""Seconds of running commands after which a draft ends. The other commands wait for the next commit."""


class WaitingCommand(Generic[T]):
    """A command, and the future that its caller waits for.

    ``requests``: the ids of the caller's request. ``place``: the caller's span. ``begun``: a batch has taken
    the command, so that its changes may be written after its caller got an error.
    """

    def __init__(
        self,
        command: Command[T],
        future: "asyncio.Future[T]",
        requests: tuple[RequestIds, ...] = (),
        place: Here = None,
    ) -> None:
        self.command = command
        self.requests = requests
        self.place = place
        self.begun = False
        self._future = future

    @property
    def answered(self) -> bool:
        """True if the caller has an outcome already, or was cancelled."""
        return self._future.done()

    def answer(self, outcome: T | Exception) -> None:
        """Give the caller the result, or the error that refused the command. Later outcomes are ignored."""
        if self._future.done():
            return
        if isinstance(outcome, Exception):
            self._future.set_exception(awaitable(outcome))
        else:
            self._future.set_result(outcome)


class CommitDraft(NamedTuple):
    """The outcomes and changes of a batch's commands.

    ``seq``: the number of the commit that the draft may become. ``at``: its time, seconds since the epoch.
    ``outcomes``: a result or an error for each of the first commands; the others wait for the next commit.
    ``seconds``: the time that each of these took.
    ``changes``: empty if every command was refused or changes nothing. ``statements``: they make the changes
    in the tables.
    """

    seq: int
    at: float
    outcomes: list[Any]
    seconds: list[float]
    changes: list[Change]
    statements: list[Statement]


def draft(
    batch: Sequence[WaitingCommand[Any]], fleet: Fleet, holdings: Holdings, seq: int, at: float
) -> CommitDraft:
    """Run a batch's commands, and leave their changes on the fleet.

    ``holdings``: of the commands' consumers, as far as they exist. ``seq``: one more than the head's. ``at``:
    seconds since the epoch.

    Raises: any error of the projection; the changes are undone then. An error of a command is its outcome.
    """
    state = State(fleet, holdings.held, at)
    try:
        outcomes, seconds = _run(batch, state)
        statements = _statements(state, ConsumerIds(dict(holdings.ids), seq))
    except BaseException:
        state.take_back(0)
        raise
    return CommitDraft(seq, at, outcomes, seconds, state.changes, statements)


def creates_all(batch: Sequence[WaitingCommand[Any]], drawn: CommitDraft) -> bool:
    """Return whether no command with an outcome was refused, and all their consumers are created."""
    written = {change.consumer for change in drawn.changes if isinstance(change, AllocationsChanged)}
    return all(
        not isinstance(outcome, Exception) and written.issuperset(waiting.command.consumers())
        for waiting, outcome in zip(batch, drawn.outcomes, strict=False)
    )


def _statements(state: State, ids: ConsumerIds) -> list[Statement]:
    if all(isinstance(change, _OF_CLAIMS) for change in state.changes):
        return project(state.fleet, state.changes, state.now, ids)
    changes = state.changes.copy()
    # The projection needs the rows and ids that removed and renamed things had before the changes.
    state.take_back(0)
    statements = project(state.fleet, changes, state.now, ids)
    for change in changes:
        state.apply(change)
    return statements


def _run(batch: Sequence[WaitingCommand[Any]], state: State) -> tuple[list[Any], list[float]]:
    """Return the outcome of each command, a result or an error, and its time. Ends after `BATCH_SECONDS`."""
    outcomes: list[Any] = []
    seconds: list[float] = []
    began = time.perf_counter()
    until = began + BATCH_SECONDS
    for waiting in batch:
        mark = len(state.changes)
        try:
            state.name(waiting.command.consumers())
            outcomes.append(waiting.command.run(state))
        except Exception as error:
            state.take_back(mark)
            outcomes.append(error)
        now = time.perf_counter()
        seconds.append(now - began)
        began = now
        if now > until:
            break
    return outcomes, seconds

"""A draft: commands that wait together, run on the fleet, and the commit that would make them true.

The fleet shows the draft's changes from then on. To take them back at once, and make them again when they
are durable, was three times the work for each change; so the ledger takes them back only if somebody wants
to read before that, or if they come to nothing.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from roost.fleet import Fleet
from roost.ledger.holdings import Holdings
from roost.ledger.projection import ConsumerIds, Statement, project
from roost.ledger.state import Command, State
from roost.model.change import AllocationsChanged, Change, GenerationChanged

T = TypeVar("T")

_OF_CLAIMS = (AllocationsChanged, GenerationChanged)
"""Changes after which all rows and names are as before."""

BATCH_SECONDS = 0.1
"""A batch that has run its commands for this long is committed; the rest wait for the next one."""


class Waiting(Generic[T]):
    """A command and the one who waits for it."""

    def __init__(self, command: Command[T], future: "asyncio.Future[T]") -> None:
        self.command = command
        self._future = future

    def answer(self, outcome: T | Exception) -> None:
        """Tell the result, or the error that it was refused with. Once."""
        if self._future.done():
            return
        if isinstance(outcome, Exception):
            self._future.set_exception(outcome)
        else:
            self._future.set_result(outcome)


class Draft(NamedTuple):
    """What came of a batch's commands.

    ``seq``: the number of the commit that it may become; ``at``: its time, seconds since the epoch.
    ``outcomes``: a result or an error for each of the first commands; the rest is to wait for the next
    commit. ``changes``, and as ``statements`` what they do to the tables: none if everything was refused or
    changes nothing.
    """

    seq: int
    at: float
    outcomes: list[Any]
    changes: list[Change]
    statements: list[Statement]


def draft(batch: Sequence[Waiting[Any]], fleet: Fleet, holdings: Holdings, seq: int, at: float) -> Draft:
    """Run a batch's commands, and leave their changes on the fleet. ``holdings``: of those of the commands'
    consumers that there are; ``seq``: one more than the head."""
    state = State(fleet, holdings.held, at)
    try:
        outcomes = _run(batch, state)
        statements = _statements(state, ConsumerIds(dict(holdings.ids), seq))
    except BaseException:
        state.take_back(0)
        raise
    return Draft(seq, at, outcomes, state.changes, statements)


def _statements(state: State, ids: ConsumerIds) -> list[Statement]:
    if all(isinstance(change, _OF_CLAIMS) for change in state.changes):
        return project(state.fleet, state.changes, state.now, ids)
    changes = state.changes.copy()
    # Of what comes and goes, rows and names are to be those before.
    state.take_back(0)
    statements = project(state.fleet, changes, state.now, ids)
    for change in changes:
        state.apply(change)
    return statements


def _run(batch: Sequence[Waiting[Any]], state: State) -> list[Any]:
    """Each command's result, or the error that it was refused with. Stops early when time is up."""
    outcomes: list[Any] = []
    until = time.perf_counter() + BATCH_SECONDS
    for waiting in batch:
        mark = len(state.changes)
        try:
            state.name(waiting.command.consumers())
            outcomes.append(waiting.command.run(state))
        except Exception as error:
            state.take_back(mark)
            outcomes.append(error)
        if time.perf_counter() > until:
            break
    return outcomes

"""A draft: commands that wait together, run on the fleet, and the commit that would make them true.

To run them changes nothing: the fleet shows what is durable and nothing else, so it is as before afterwards.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from roost.fleet import Fleet
from roost.ledger.holdings import Holdings
from roost.ledger.projection import ConsumerIds, Statement, project
from roost.ledger.state import Command, State
from roost.ledger.tail import Position
from roost.model.change import Change

T = TypeVar("T")

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
    """What came of a batch's commands, made at ``at`` (seconds since the epoch).

    ``after``: the commit that they were run on. ``outcomes``: a result or an error for each of the first
    commands; the rest is to wait for the next commit. ``changes``, and as ``statements`` what they do to the
    tables; none if everything was refused or changes nothing. ``ids``: of the consumers that they make.
    """

    after: Position
    at: float
    outcomes: list[Any]
    changes: list[Change]
    statements: list[Statement]
    ids: Mapping[str, int]


def draft(
    batch: Sequence[Waiting[Any]],
    fleet: Fleet,
    holdings: Holdings,
    after: Position,
    at: float,
    under_way: "Draft | None" = None,
) -> Draft:
    """Run a batch's commands. ``holdings``: of those of their consumers that there are.

    ``under_way``: what will be commit ``after`` once it is durable. Its changes are taken for granted, by the
    fleet and for the consumers that they are about.
    """
    state = State(fleet, holdings.held, at)
    ids = ConsumerIds(holdings.ids, after.seq + 1)
    if under_way is not None:
        ids.known.update(under_way.ids)
        for change in under_way.changes:
            state.apply(change)
    mark = len(state.changes)
    try:
        outcomes = _run(batch, state)
        changes = state.changes[mark:]
        state.take_back(mark)
        statements = project(fleet, changes, at, ids)
    finally:
        state.take_back(0)
    return Draft(after, at, outcomes, changes, statements, ids.new)


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

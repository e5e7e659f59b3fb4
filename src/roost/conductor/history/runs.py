"""The runs of the scheduler in the history of an instance, from the records."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, get_args

from roost.conductor.history.types import HistoryEvent, InstanceAction
from roost.model.move import MoveKind
from roost.model.record import PENDING, REFUSED, Attempt, Run
from roost.records import RunWithAttempts

_PLACED = (*get_args(MoveKind), "unshelve")
"""The kinds of actions for which the scheduler chooses a host."""


class CellBuilds(NamedTuple):
    """The builds that the cell of an instance knows.

    ``run``: the run of the scheduler that they are of; None: the cell names none. ``of_ordinals``: the builds
    by the ordinals of their claims in that run.
    """

    run: str | None
    of_ordinals: Mapping[int, HistoryEvent]


class RunJoin:
    """Joins runs to the actions of one instance, the first of which is its creation.

    ``silent``: the cell cannot be asked.
    """

    def __init__(
        self, instance: str, actions: Sequence[InstanceAction], builds: CellBuilds, silent: bool
    ) -> None:
        self._instance = instance
        self._actions = actions
        self._builds = builds
        self._silent = silent

    def join(self, runs: Iterable[RunWithAttempts]) -> None:
        """Insert runs, and attempts that the cell does not know, into the events of their actions."""
        of_creation = []
        for whole in runs:
            if whole.run.spec.get("operation", "create") == "create":
                of_creation.append(whole)
            else:
                self._join_move(whole)
        self._join_creation(of_creation)

    def _join_move(self, whole: RunWithAttempts) -> None:
        """Insert a run into the first move or unshelving that had not ended when it began."""
        run = whole.run
        for move in self._actions:
            if move.kind in _PLACED and (move.finished_at is None or move.finished_at >= run.started_at):
                break
        else:
            return
        attempts = [each for each in whole.attempts if each.instance == self._instance]
        hosts = {event.host for event in move.events}
        for event in move.events:
            event.run = event.run or run.id
        claims = [self._claim(each) for each in attempts if each.host not in hosts]
        move.events = [self._scheduled(run, attempts), *claims, *move.events]
        move.started_at = min(move.started_at, run.started_at)

    def _join_creation(self, runs: Iterable[RunWithAttempts]) -> None:
        create = self._actions[0]
        events = create.events
        first = 1 if events and events[0].name == "accept" else 0
        before, rest = events[:first], events[first:]
        told: list[HistoryEvent] = []
        for whole in runs:
            run = whole.run
            attempts = [each for each in whole.attempts if each.instance == self._instance]
            told.append(self._scheduled(run, attempts))
            builds = self._builds.of_ordinals if run.id == self._builds.run else {}
            claims = {each.ordinal: self._claim(each) for each in attempts if each.ordinal not in builds}
            hosts = {**builds, **claims}
            told += [hosts[ordinal] for ordinal in sorted(hosts)]
        there = {id(event) for event in told}
        create.events = [*before, *told, *(event for event in rest if id(event) not in there)]

    def _scheduled(self, run: Run, attempts: Sequence[Attempt]) -> HistoryEvent:
        chosen = next((each.selected for each in run.destinations if each.instance == self._instance), None)
        selected = chosen is not None or any(each.result != REFUSED for each in attempts)
        return HistoryEvent(
            name="schedule",
            started_at=run.started_at,
            finished_at=run.finished_at,
            result="selected" if selected else "refused",
            reason=None if selected else run.refusal,
            host=None if chosen is None else chosen.host,
            node=None if chosen is None else chosen.node,
            cell=None if chosen is None else chosen.cell,
            run=run.id,
        )

    def _claim(self, attempt: Attempt) -> HistoryEvent:
        """Return the event of an attempt that the cell does not know: a build if the cell cannot be asked."""
        return HistoryEvent(
            name="build" if self._silent and attempt.result != REFUSED else "claim",
            started_at=attempt.at,
            finished_at=attempt.finished_at,
            result=None if attempt.result == PENDING else attempt.result,
            reason=attempt.reason,
            cell=attempt.cell,
            host=attempt.host,
            node=attempt.node or None,
            run=attempt.run,
        )

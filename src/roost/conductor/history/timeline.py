"""The timeline of an instance: facts of the API database, its cell and the records merged into actions.

The cell's transitions are the backbone: they were written with the states. The records add the runs of the
scheduler and the hosts whose claims were refused. Their other facts are left out, so a history does not
depend on the records. If the cell cannot be asked, the builds come from the records.
"""

from collections.abc import Callable, Sequence

from roost.conductor.history.actions import asked, finish
from roost.conductor.history.runs import CellBuilds, RunJoin
from roost.conductor.history.shelf import ShelfActions
from roost.conductor.history.types import HistoryEvent, InstanceAction
from roost.model.instance import (
    ABANDONED,
    ACTIVE,
    ASSIGNED,
    DELETING,
    DESTROYED,
    ERROR,
    FAILED,
    GONE,
    LOST,
    MOVED,
    MOVING,
    NOT_MOVED,
    OFFLOADED,
    POWERING_OFF,
    POWERING_ON,
    REBUILDING,
    REBUILDING_STOPPED,
    RESHAPED,
    SHELVED,
    SHELVING,
    STARTING,
    STOPPED,
    UNSHELVING,
    Transition,
)
from roost.records import RunWithAttempts
from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.past import KnownInstance
from roost.state.cell_database.history import StoredHistory


def actions_of(
    known: KnownInstance,
    stored: StoredHistory | None,
    runs: Sequence[RunWithAttempts],
    *,
    silent: bool = False,
) -> list[InstanceAction]:
    """Return the actions of an instance, in order, each with its events.

    ``stored``: the history in its cell, None if there is none. ``silent``: the cell cannot be asked.
    ``runs``: the scheduler's runs for the instance, in any order.
    """
    story = _Story(known, stored, silent)
    for transition in () if stored is None else stored.transitions:
        story.tell(transition)
    story.end()
    join = RunJoin(known.uuid, story.actions, story.builds, silent)
    join.join(sorted(runs, key=lambda each: each.run.started_at))
    return story.actions


class _Story:
    def __init__(self, known: KnownInstance, stored: StoredHistory | None, silent: bool) -> None:
        self._known = known
        self._stored = stored
        self._silent = silent
        transitions = () if stored is None else stored.transitions
        began = known.accepted_at
        if began is None:
            began = transitions[0].at if transitions else 0.0
        self._create = InstanceAction(
            kind="create",
            request_id=known.request_id,
            user_id=known.user_id,
            project_id=known.project_id,
            started_at=began,
        )
        self.actions = [self._create]
        self._ordinals: dict[int, HistoryEvent] = {}
        """The builds by the ordinals of their claims."""
        self._build: HistoryEvent | None = None
        self._free: HistoryEvent | None = None
        self._host: Transition | None = None
        """The transition to the present attempt."""
        crossed = next((each.cells for each in transitions if each.cells is not None), None)
        self._cell = known.cell if crossed is None else crossed[0]
        """The cell of the present attempt."""
        self._delete: InstanceAction | None = None
        self._move: InstanceAction | None = None
        """The move that is under way."""
        self._power: InstanceAction | None = None
        """The stop, start or rebuild that is under way."""
        self._shelf = ShelfActions()
        self._reason: str | None = None
        """Why the instance is abandoned."""
        self._told: dict[str, Callable[[Transition], None]] = {
            ASSIGNED: self._assign,
            STARTING: self._confirm,
            ACTIVE: self._run,
            FAILED: self._end_attempt,
            ABANDONED: self._abandon,
            ERROR: self._fail,
            LOST: self._lose,
            POWERING_OFF: self._begin_power,
            POWERING_ON: self._begin_power,
            STOPPED: self._stopped,
            REBUILDING: self._begin_rebuild,
            REBUILDING_STOPPED: self._begin_rebuild,
            SHELVING: self._begin_shelving,
            OFFLOADED: self._offloaded,
            SHELVED: self._shelved,
            UNSHELVING: self._begin_unshelving,
            DELETING: self._begin_deletion,
            DESTROYED: self._destroyed,
            RESHAPED: self._reshape,
            MOVING: self._begin_move,
            MOVED: self._end_move,
            NOT_MOVED: self._end_move,
            GONE: self._end_free,
        }

    @property
    def builds(self) -> CellBuilds:
        """The builds that the cell knows."""
        return CellBuilds(None if self._stored is None else self._stored.run, self._ordinals)

    # From the cell

    def tell(self, new: Transition) -> None:
        """Add the next transition."""
        tell = self._told.get(new.state)
        # A later version may know further states.
        if tell is not None:
            tell(new)

    def _assign(self, new: Transition) -> None:
        self._host = new
        run = None if self._stored is None else self._stored.run
        if self._shelf.action is not None:
            self._build = self._there("build", new.at, attempt=new.attempt)
            self._shelf.action.events.append(self._build)
            return
        self._build = self._there("build", new.at, attempt=new.attempt, run=run or None)
        self._create.events.append(self._build)
        self._ordinals[new.ordinal] = self._build

    def _confirm(self, new: Transition) -> None:
        if self._build is not None:
            self._build.confirmed_at = new.at

    def _run(self, new: Transition) -> None:
        if self._create.result is None:
            self._end_build(new, "built")
            finish(self._create, new.at, "success")
            return
        if self._shelf.action is not None:
            self._end_build(new, "built")
            self._shelf.unshelved(new.at)
            return
        self._end_power(new.at, "started", new.reason)
        found = self._loss()
        if found is not None:
            found.events.append(self._there("find", new.at, finished_at=new.at, result="found"))
            finish(found, new.at, "success", found.reason)

    def _loss(self) -> InstanceAction | None:
        """Return the action of a guest that is lost now."""
        return next((each for each in self.actions if each.kind == "lose" and each.result is None), None)

    def _begin_power(self, new: Transition) -> None:
        """Begin a stop or start. One that is under way has been overtaken."""
        self._end_power(new.at, "abandoned")
        kind = "stop" if new.state == POWERING_OFF else "start"
        self._power = asked(kind, new.by, new.at)
        self._power.reason = new.reason
        self._power.events.append(self._there(kind, new.at))
        self.actions.append(self._power)

    def _begin_rebuild(self, new: Transition) -> None:
        self._power = asked("rebuild", new.by, new.at)
        self._power.events.append(self._there("rebuild", new.at, attempt=new.attempt))
        self.actions.append(self._power)

    def _begin_shelving(self, new: Transition) -> None:
        self.actions.append(self._shelf.begin("shelve", new, self._there("offload", new.at)))

    def _offloaded(self, new: Transition) -> None:
        if self._shelf.action is not None:
            self._free = self._there("free", new.at)
            self._shelf.offload(new, self._free)

    def _shelved(self, new: Transition) -> None:
        self._end_free(new)
        self._host = None
        self._shelf.shelved(new.at, self._reason)

    def _begin_unshelving(self, new: Transition) -> None:
        self._reason = None
        self.actions.append(self._shelf.begin("unshelve", new))

    def _stopped(self, new: Transition) -> None:
        self._end_power(new.at, "stopped", new.reason)

    def _end_power(self, at: float, result: str, reason: str | None = None) -> None:
        """End the stop, start or rebuild that is under way.

        ``result``: of the host; another one than was wanted is a failure.
        """
        action, self._power = self._power, None
        if action is None:
            return
        if action.kind == "rebuild" and result in ("started", "stopped"):
            result = "built"
        done = {"stop": "stopped", "start": "started", "rebuild": "built"}[action.kind]
        if result not in (done, "abandoned"):
            result = "failed"
        event = action.events[0]
        event.finished_at, event.result, event.reason = at, result, reason
        ends = {done: "success", "failed": "error", "abandoned": "abandoned"}
        finish(action, at, ends[result], reason or action.reason)

    def _lose(self, new: Transition) -> None:
        self._end_power(new.at, "lost", new.reason)
        if self._loss() is not None:
            return
        lost = InstanceAction(kind="lose", started_at=new.at, reason=new.reason)
        lost.events = [self._there("lose", new.at, finished_at=new.at, result="lost")]
        self.actions.append(lost)

    def _reshape(self, new: Transition) -> None:
        event = self._there("reshape", new.at, finished_at=new.at, result="moved", reason=new.reason)
        if self._create.result is None:
            self._create.events.append(event)
            return
        action = InstanceAction(kind="reshape", started_at=new.at, events=[event])
        finish(action, new.at, "success", new.reason)
        # A build that is under way goes on after it.
        last = self.actions[-1]
        self.actions.insert(len(self.actions) - (last.result is None), action)

    def _begin_move(self, new: Transition) -> None:
        """Add a target of a move. The attempt on the target before it has failed."""
        move = self._move_of(new)
        self._end_target(new.at, "failed", new.reason)
        event = self._there("move", new.at, attempt=new.attempt)
        event.host, event.node = new.host, new.node
        if new.cells is not None:
            event.cell = new.cells[1]
        move.events.append(event)

    def _end_move(self, new: Transition) -> None:
        """End the move that is under way. An instance that is moved without one has gone back by a revert."""
        moved = new.state == MOVED
        if moved:
            self._host = new
            self._cell = self._cell if new.cells is None else new.cells[1]
            if (lost := self._loss()) is not None:
                # Its host is dead; the instance runs elsewhere now.
                finish(lost, new.at, "success", lost.reason)
        if moved and self._move is None:
            back = InstanceAction(kind="revert", started_at=new.at)
            back.events = [
                self._there("move", new.at, attempt=new.attempt, finished_at=new.at, result="moved")
            ]
            finish(back, new.at, "success")
            self.actions.append(back)
            return
        move = self._move_of(new)
        self._end_target(new.at, "moved" if moved else "failed", new.reason)
        finish(move, new.at, "success" if moved else "error", new.reason)
        self._move = None

    def _move_of(self, new: Transition) -> InstanceAction:
        """Return the move that is under way; a transition without one begins it."""
        if self._move is None:
            self._move = asked(new.kind or "migrate", new.by, new.at)
            self.actions.append(self._move)
        return self._move

    def _end_target(self, at: float, result: str, reason: str | None = None) -> None:
        """End the last attempt of the move that is under way, if it has not ended."""
        events = [] if self._move is None else self._move.events
        if events and events[-1].result is None:
            events[-1].finished_at, events[-1].result, events[-1].reason = at, result, reason

    def _leave_move(self, at: float) -> None:
        """End the move that is under way, as its instance ends."""
        if self._move is not None:
            self._end_target(at, "abandoned")
            finish(self._move, at, "abandoned")
            self._move = None

    def _end_attempt(self, new: Transition) -> None:
        self._end_build(new, "failed")
        self._give_up(new)

    def _end_build(self, new: Transition, result: str) -> None:
        if self._build is not None:
            self._build.finished_at, self._build.result = new.at, result
            self._build.reason, self._build.code = new.reason, new.code
            self._build = None

    def _abandon(self, new: Transition) -> None:
        """No further attempt is made; the claim is freed next."""
        self._leave_move(new.at)
        self._end_power(new.at, "abandoned")
        self._end_build(new, "failed")
        self._reason = new.reason
        self._give_up(new)
        action = self._shelf.action or (self._create if self._create.result is None else self.actions[-1])
        self._free = self._there("free", new.at)
        action.events.append(self._free)

    def _give_up(self, new: Transition) -> None:
        """An operator has ended an attempt, or an instance that ran."""
        if new.by is None and (self._create.result is None or self._shelf.action is not None):
            return
        if (lost := self._loss()) is not None:
            finish(lost, new.at, "error", lost.reason)
        action = asked("give_up", new.by, new.at)
        action.events = [self._there("give_up", new.at, finished_at=new.at, result="success")]
        finish(action, new.at, "success", new.reason)
        self.actions.append(action)

    def _fail(self, new: Transition) -> None:
        self._leave_move(new.at)
        self._end_free(new)
        if self._create.result is None:
            reason = new.reason or self._reason
            if not self._create.events:
                buried = HistoryEvent(name="bury", started_at=new.at, finished_at=new.at, result="error")
                buried.reason, buried.cell = reason, CELL0
                self._create.events.append(buried)
            finish(self._create, new.at, "error", reason)

    def _begin_deletion(self, new: Transition) -> None:
        self._leave_move(new.at)
        self._end_power(new.at, "abandoned")
        self._end_build(new, "abandoned")
        self._shelf.leave(new.at)
        if self._free is not None and self._free.result is None:
            self._free.finished_at, self._free.result = new.at, "abandoned"
        if self._create.result is None:
            finish(self._create, new.at, "abandoned")
        if (lost := self._loss()) is not None:
            finish(lost, new.at, "abandoned", lost.reason)
        self._delete = self._deletion(new.at)
        if self._host is not None:
            self._delete.events.append(self._there("destroy", new.at))

    def _destroyed(self, new: Transition) -> None:
        self._leave_move(new.at)
        if self._delete is None:
            self._delete = self._deletion(new.at)
        for event in self._delete.events:
            event.finished_at, event.result, event.reason = new.at, "success", new.reason
        self._free = HistoryEvent(name="free", started_at=new.at, cell=self._cell)
        self._delete.events.append(self._free)

    def _end_free(self, new: Transition) -> None:
        if self._free is not None and self._free.result is None:
            self._free.finished_at, self._free.result = new.at, "success"

    def _there(self, name: str, at: float, **facts: object) -> HistoryEvent:
        """An event on the present host."""
        host = self._host
        return HistoryEvent(
            name=name,  # type: ignore[arg-type]
            started_at=at,
            cell=self._cell,
            host=None if host is None else host.host,
            node=None if host is None else host.node,
            **facts,  # type: ignore[arg-type]
        )

    # From the API database

    def _deletion(self, at: float) -> InstanceAction:
        """Return the action of the deletion. ``at``: its beginning, if the API database does not know it."""
        known = self._known.deletion
        action = asked("delete", None if known is None else known.by, at if known is None else known.at)
        self.actions.append(action)
        return action

    def end(self) -> None:
        """Add the beginning and the end from the API database."""
        known = self._known
        if known.accepted_at is not None:
            accepted = HistoryEvent(
                name="accept", started_at=known.accepted_at, finished_at=known.accepted_at, result="success"
            )
            self._create.events.insert(0, accepted)
        if known.deletion is None:
            return
        if self._delete is None:
            if self._stored is None and not self._silent:
                finish(self._create, known.deletion.at, "abandoned")
            self._delete = self._deletion(known.deletion.at)
        if known.ended_at is not None:
            if not self._delete.events:
                freed = HistoryEvent(name="free", started_at=known.deletion.at)
                freed.finished_at, freed.result = known.ended_at, "success"
                self._delete.events.append(freed)
            finish(self._delete, known.ended_at, "success")

"""The work of super conductors on maintenances: hosts are emptied wave by wave, worked on, and given back.

Each maintenance is owned by one super conductor, and taken over when that is dead. The row of each host says
how far it is, and each step is a transaction that names the owner and its number. So a process that dies
between two steps is followed by another one that reads the rows as they are, and one that comes late changes
nothing. Words are stored by the step that changes the row, and announced afterwards, again after a crash.

The moves are those of drains (`roost.conductor.words.departures`): the wave disables its hosts by operators'
words that have the wish that instances move away. A host is empty when its drain has ended.

The hook is called only for a host that the transaction which begins the call has seen disabled and empty. A
process whose lease may be another's begins no call, and stops those that are under way.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from roost.conductor.context import SuperConductorContext
from roost.conductor.maintenance.guests import wanted_plan
from roost.conductor.maintenance.hook import HookCall, MaintenanceHook, MaintenanceOptions
from roost.ledger import LedgerError
from roost.model.maintenance import (
    CANCELLING,
    DISABLING,
    EMPTYING,
    IN_WORK,
    PAUSED,
    RETURNING,
    RUNNING,
    WAITING,
    HookResult,
    MaintainedHost,
    Maintenance,
)
from roost.model.operator_word import SaidWord, Subject
from roost.placement.errors import PlacementError
from roost.process.context import Work
from roost.process.metrics import catalogue as metrics
from roost.scheduler.errors import BadRequestSpec, SchedulerError
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.maintenance_rows import HostInWave, hosts_in_state, read_wave
from roost.state.api_database.maintenance_waves import (
    MaintenanceOwner,
    begin_call,
    begin_wave,
    empty_again,
    end_call,
    end_maintenance,
    has_free_maintenances,
    leave_out,
    note_announced,
    note_empty,
    note_reason,
    note_returned,
    owned_maintenances,
    return_host,
    take_maintenances,
)
from roost.state.api_database.tables import API
from roost.state.cell_database.departures import DrainProgress, describe_drain
from roost.state.cell_database.hosts import describe_hosts
from roost.state.cell_database.instance_search import count_remaining
from roost.state.cell_database.moves import MoveFilter, list_moves
from roost.state.leases import Tenure
from roost.storage import StorageError

T = TypeVar("T")

EVERY_SECONDS = 2.0
"""Seconds between two looks while this process carries no maintenance."""

BUSY_SECONDS = 0.5
"""Seconds between two looks at a maintenance that is under way."""

PLAN_SECONDS = 10.0
"""Seconds until a plan is asked for again that could not be made, or empties no host."""

MOST_MOVES = 1000
"""Moves of a host that are looked at."""

STUCK_LOOK_SECONDS = 10.0
"""Seconds between two looks at what keeps the instances of a host there."""

CANCELLED_BEFORE = "the maintenance was cancelled"
ENABLED_MEANWHILE = "somebody has enabled the host meanwhile"
MAY_COME = "it has no instance, and one that was asked for before it was disabled may still come to it"
NOT_MOVED = "somebody has disabled the host meanwhile, without the wish that its instances move"


class AnnouncesWords(Protocol):
    """The part of `roost.conductor.words.words.Words` that is needed."""

    async def follow_up(self, words: Sequence[SaidWord]) -> None:
        """Make words count that are stored already. Raises `StorageError`, and what placement raises."""


class _Seen(NamedTuple):
    """The progress of a host that is emptied, by the monotonic clock.

    ``left``: the number of instances that are left. ``look``: when is looked closely at why they are.
    ``signs``: of what keeps them there, as seen at the last close look, and ``since``: when these were seen
    first. ``reason``: what the host is waited for, after that look.
    """

    left: int
    look: float
    signs: frozenset[tuple[str, str]] = frozenset()
    since: float = 0.0
    reason: str | None = None


class Maintenances:
    """The maintenances that this process carries.

    ``hook``: None: operators say when the work on a host is done. ``calling``: the calls that are under way.
    """

    def __init__(
        self,
        tenure: Tenure,
        words: AnnouncesWords,
        hook: MaintenanceHook | None,
        options: MaintenanceOptions,
    ) -> None:
        self.tenure = tenure
        self.words = words
        self.hook = hook
        self.options = options
        self.calling: dict[tuple[str, str], HookCall] = {}
        self.due: dict[tuple[str, str], float] = {}
        """When the hook is called again for a host, and, for an empty name, when a plan is asked for again,
        by the monotonic clock."""
        self.seen: dict[tuple[str, str], _Seen] = {}
        """The progress of hosts that are emptied."""
        self.no_host_since: dict[str, float] = {}
        """Since when no further host of a maintenance can be emptied, by the monotonic clock."""

    def keep(self, mine: Sequence[Maintenance]) -> None:
        """Forget what is known of other maintenances than these."""
        known = {each.uuid for each in mine}
        self.due = {key: due for key, due in self.due.items() if key[0] in known}
        self.seen = {key: seen for key, seen in self.seen.items() if key[0] in known}
        self.no_host_since = {key: at for key, at in self.no_host_since.items() if key in known}


async def carry_maintenances(context: SuperConductorContext, work: Maintenances) -> None:
    """Carry all maintenances of this process, for ever."""
    while True:
        is_busy = False
        try:
            is_busy = await step_maintenances(context, work)
        except StorageError as error:
            context.log("maintenances go on later", {"error": one_line(error)}, "debug")
        await context.sleep(BUSY_SECONDS if is_busy else EVERY_SECONDS)


async def step_maintenances(context: SuperConductorContext, work: Maintenances) -> bool:
    """Take the maintenances of this process on; returns whether it has some. Raises `StorageError` of the
    API database."""
    if not work.tenure.holds(context.monotonic()):
        await _stop_calls(work, {})
        return False
    owner = work.tenure.holder
    if await context.read(API, has_free_maintenances()):
        await context.write(API, take_maintenances(owner))
    mine = await context.read(API, owned_maintenances(owner))
    work.keep(mine)
    found = await context.together([_read_wave(context, each) for each in mine])
    waves = {each.uuid: wave for each, wave in zip(mine, found, strict=True)}
    await _stop_calls(work, waves)
    await context.together([_carry(context, work, each, waves[each.uuid]) for each in mine])
    return bool(mine)


async def _read_wave(context: SuperConductorContext, maintenance: Maintenance) -> list[HostInWave]:
    return await context.read(API, read_wave(maintenance.uuid))


async def _stop_calls(work: Maintenances, waves: Mapping[str, Sequence[HostInWave]]) -> None:
    """Stop the calls of the hook for hosts on which this process has no work any more."""
    wanted = {
        (uuid, each.row.host) for uuid, wave in waves.items() for each in wave if each.row.state == IN_WORK
    }
    for key, call in list(work.calling.items()):
        if key not in wanted and work.hook is not None:
            await work.hook.stop(call)


async def _carry(
    context: SuperConductorContext, work: Maintenances, maintenance: Maintenance, wave: Sequence[HostInWave]
) -> None:
    """Take a maintenance one step on."""
    owned = MaintenanceOwner(maintenance.uuid, work.tenure.holder, maintenance.owner_epoch)
    step = _Step(context, work, maintenance, owned)
    try:
        await step.take(wave)
    except Exception as error:
        # For example, placement or a cell cannot be reached. No error may end the only coroutine of all.
        values = {"maintenance": maintenance.uuid, "error": one_line(error)}
        known = isinstance(error, StorageError | PlacementError | SchedulerError | LedgerError)
        context.log("a maintenance goes on later", values, "warning", None if known else error)


class _Step:
    """One look at a maintenance, of which the methods are parts."""

    def __init__(
        self,
        context: SuperConductorContext,
        work: Maintenances,
        maintenance: Maintenance,
        owned: MaintenanceOwner,
    ) -> None:
        self._context = context
        self._work = work
        self._maintenance = maintenance
        self._owned = owned

    async def take(self, wave: Sequence[HostInWave]) -> None:
        """Take each host of the wave one step on; without any, begin the next wave, or end."""
        if not wave:
            return await self._go_on()
        by_state = defaultdict[str, list[HostInWave]](list)
        for each in wave:
            by_state[each.row.state].append(each)
        await self._announce(by_state[DISABLING], by_state[RETURNING])
        if self._maintenance.state == CANCELLING:
            for each in (*by_state[DISABLING], *by_state[EMPTYING], *by_state[IN_WORK]):
                if _key(each.row) not in self._work.calling:
                    await self._return(each.row, CANCELLED_BEFORE)
            return None
        await self._empty(by_state[EMPTYING])
        await self._say_wait(by_state[EMPTYING])
        for each in by_state[IN_WORK]:
            await self._work_on(each)
        return None

    # The hosts of a wave

    async def _announce(self, disabling: Sequence[HostInWave], returning: Sequence[HostInWave]) -> None:
        """Make the words count that were stored when hosts entered these states."""
        if not disabling and not returning:
            return
        said = [_word(each) for each in (*disabling, *returning)]
        await self._work.words.follow_up(said)
        at = self._context.clock()
        if disabling:
            await self._write(note_announced(self._owned, _names(disabling), at))
        if returning:
            ends = await self._write(note_returned(self._owned, _names(returning), at))
            for each in ends or ():
                metrics.MAINTAINED_HOSTS.labels(each.replace("-", "_")).inc()

    async def _empty(self, hosts: Sequence[HostInWave]) -> None:
        """Note hosts that are empty, and leave those out that do not get empty."""
        empty = [each for each in hosts if each.empty]
        if empty:
            await self._write(note_empty(self._owned, _names(empty), self._context.clock()))
        by_cell = defaultdict[str, list[HostInWave]](list)
        for each in hosts:
            if not each.disabled:
                await self._return(each.row, ENABLED_MEANWHILE)
            elif each.empty:
                self._work.seen.pop(_key(each.row), None)
            else:
                by_cell[each.row.cell].append(each)
        if self._maintenance.state == PAUSED:
            for each in hosts:
                self._work.seen.pop(_key(each.row), None)
            return
        await self._context.together([self._look_at(cell, of) for cell, of in by_cell.items()])

    async def _say_wait(self, hosts: Sequence[HostInWave]) -> None:
        """Say what the first host of some is waited for that does not get empty, until it goes on."""
        seen = ((each.row.host, self._work.seen.get(_key(each.row))) for each in hosts)
        reasons = (f"host {host} is waited for: {of.reason}" for host, of in seen if of and of.reason)
        await self._note(next(reasons, None))

    async def _look_at(self, cell: str, hosts: Sequence[HostInWave]) -> None:
        """Leave out hosts of a cell whose instances do not leave; later if the cell does not answer."""
        subjects = tuple(Subject(cell, each.row.host) for each in hosts)
        try:
            left = (await self._context.read(f"cell/{cell}", count_remaining(subjects))).instances
            now = self._context.monotonic()
            for each, subject in zip(hosts, subjects, strict=True):
                key, number = _key(each.row), left.get(subject, 0)
                seen = self._work.seen.get(key)
                if seen is None or seen.left != number:
                    seen = _Seen(number, now + self._work.options.stuck_seconds)
                self._work.seen[key] = seen
                if now >= seen.look:
                    await self._look_closely(each, subject, seen)
        except StorageError as error:
            values = {"cell": cell, "error": one_line(error)}
            self._context.log("hosts of a maintenance are looked at later", values, "debug")

    async def _look_closely(self, each: HostInWave, subject: Subject, seen: _Seen) -> None:
        """Leave a host out that no instance has left for some time, unless one may soon.

        What goes on there, or elsewhere in the cell while its own instances wait for their turn, is waited
        for, as long as something of it changes. Raises `StorageError`.
        """
        now, database = self._context.monotonic(), f"cell/{subject.cell}"
        if not each.moves:
            return await self._return(each.row, NOT_MOVED)
        progress = await self._context.read(database, describe_drain(subject, 0.0))
        under_way = await self._context.read(
            database, list_moves(MoveFilter(under_way=True, host=subject.host), MOST_MOVES)
        )
        reason = _why_stuck(progress, len(under_way))
        signs = {(move.uuid, move.state) for move in under_way}
        signs |= {(each.instance, each.state) for each in progress.staying}
        if progress.waiting:
            others = await self._context.read(database, list_moves(MoveFilter(under_way=True), MOST_MOVES))
            signs |= {(move.uuid, move.state) for move in others}
        since = seen.since if signs == seen.signs else now
        # What a dead host has to do, or moves from there, may be waited for for ever.
        goes_on = progress.stuck < progress.left or not progress.left
        if goes_on and now - since < self._work.options.stuck_seconds:
            look = now + STUCK_LOOK_SECONDS
            self._work.seen[_key(each.row)] = _Seen(seen.left, look, frozenset(signs), since, reason)
            return None
        return await self._return(each.row, reason)

    async def _work_on(self, each: HostInWave) -> None:
        """Call the hook for a host that is empty, if it is due."""
        key = _key(each.row)
        if key in self._work.calling:
            return
        if not each.disabled:
            await self._return(each.row, ENABLED_MEANWHILE)
        elif not each.empty:
            await self._write(empty_again(self._owned, each.row.host, self._context.clock()))
        elif self._may_call(key):
            call = HookCall(each.row.maintenance, each.row.host, each.row.cell, 0)
            self._work.calling[key] = call
            self._context.start(f"hook of {each.row.host}", self._call(call))

    def _may_call(self, key: tuple[str, str]) -> bool:
        """Return whether a call of the hook may begin for a host now."""
        work = self._work
        has_room = len(work.calling) < work.options.at_once
        is_due = work.due.get(key, 0.0) <= self._context.monotonic()
        return work.hook is not None and self._maintenance.state == RUNNING and has_room and is_due

    async def _call(self, call: HookCall) -> None:
        """Call the hook, and note how that ended."""
        work, context = self._work, self._context
        assert work.hook is not None
        try:
            number = await context.write(API, begin_call(self._owned, call.host))
            if number is None:
                return
            call = HookCall(call.maintenance, call.host, call.cell, number)
            work.calling[call.key] = call
            # What was promised by the transaction holds as long as nobody else can own the maintenance.
            if not work.tenure.holds(context.monotonic()) or work.tenure.holder != self._owned.owner:
                return
            try:
                result = await work.hook.call(call)
            except Exception as error:
                result = HookResult(f"it cannot be called: {one_line(error)}")
            metrics.MAINTENANCE_HOOK_CALLS.labels("failed" if result.failure else "done").inc()
            await self._end_call(call, result)
        except StorageError as error:
            values = {"host": call.host, "error": one_line(error)}
            context.log("the hook of a maintenance is called later", values, "debug")
        finally:
            work.calling.pop(call.key, None)

    async def _end_call(self, call: HookCall, result: HookResult) -> None:
        """Note how a call ended, as soon as the database answers. Raises `StorageError` without a lease."""
        work, context = self._work, self._context
        while True:
            ended = end_call(self._owned, call.host, result, work.options.tries, context.clock())
            try:
                there = await context.write(API, ended)
            except StorageError:
                if not work.tenure.holds(context.monotonic()):
                    raise
                await context.sleep(EVERY_SECONDS)
                continue
            if there is not None and result.failure is not None:
                work.due[call.key] = context.monotonic() + work.options.backoff.pause(there.failures)
            return

    async def _return(self, host: MaintainedHost, reason: str) -> None:
        """Leave a host out."""
        self._work.seen.pop(_key(host), None)
        await self._write(return_host(self._owned, host.host, reason, self._context.clock()))

    # Waves

    async def _go_on(self) -> None:
        """Begin the next wave; end the maintenance if there is none."""
        uuid, due = self._owned.uuid, self._work.due
        if self._maintenance.state == PAUSED or due.get((uuid, ""), 0.0) > self._context.monotonic():
            return
        waiting = await self._context.read(API, hosts_in_state(uuid, WAITING))
        if self._maintenance.state == CANCELLING or not waiting:
            await self._write(end_maintenance(self._owned, self._context.clock()))
            return
        due[uuid, ""] = self._context.monotonic() + PLAN_SECONDS
        gone = await self._gone(waiting)
        if gone:
            await self._leave_out(dict.fromkeys(gone, "the host was removed from its cell"))
            waiting = [each for each in waiting if each.host not in gone]
        if not waiting:
            due.pop((uuid, ""))
            return
        plan = await self._plan(waiting)
        if plan is None:
            return
        if not plan.waves:
            await self._none_left(plan)
            return
        self._work.no_host_since.pop(uuid, None)
        wave = plan.waves[0]
        targets: dict[str, dict[str, str]] = {host: {} for host in wave.hosts}
        for move in wave.moves:
            targets[move.source][move.guest] = move.target
        begun = await self._write(begin_wave(self._owned, targets, self._context.clock()))
        if begun is not None:
            due.pop((uuid, ""))

    async def _gone(self, waiting: Sequence[MaintainedHost]) -> frozenset[str]:
        """Return the hosts that are not in their cells any more. Raises `StorageError`."""
        by_cell = defaultdict[str, list[str]](list)
        for each in waiting:
            by_cell[each.cell].append(each.host)
        gone: set[str] = set()
        for cell, hosts in by_cell.items():
            gone |= {*hosts} - (await self._context.read(f"cell/{cell}", describe_hosts(tuple(hosts)))).keys()
        return frozenset(gone)

    async def _plan(self, waiting: Sequence[MaintainedHost]) -> MaintenancePlan | None:
        """Return a plan for the hosts that wait; None: none can be made now, and the reason is noted."""
        maintenance = self._maintenance
        try:
            wanted = await wanted_plan(
                self._context,
                [each.host for each in waiting],
                {each.cell for each in waiting},
                reserve=maintenance.reserve,
                most_hosts=maintenance.most_hosts,
            )
            plan = await self._context.scheduler.plan_maintenance(wanted)
        except BadRequestSpec as error:
            await self._note(f"the next wave cannot be planned: {one_line(error)}", pauses=True)
            return None
        except (StorageError, SchedulerError, PlacementError) as error:
            await self._note(f"the next wave cannot be planned now: {one_line(error)}")
            return None
        if plan is None:
            await self._note("the next wave cannot be planned now: the scheduler makes no plan")
        return plan

    async def _none_left(self, plan: MaintenancePlan) -> None:
        """Leave the hosts that wait out, or pause, after no plan has emptied one of them for some time."""
        now, uuid = self._context.monotonic(), self._owned.uuid
        since = self._work.no_host_since.setdefault(uuid, now)
        first = plan.left_out[0]
        reason = f"no further host can be emptied; host {first.host}: {first.reason}"
        if now - since < self._work.options.stuck_seconds:
            await self._note(reason)
        elif self._maintenance.keeps_going:
            await self._leave_out({each.host: each.reason for each in plan.left_out})
        else:
            del self._work.no_host_since[uuid]
            await self._note(reason, pauses=True)

    async def _leave_out(self, reasons: Mapping[str, str]) -> None:
        number = await self._write(leave_out(self._owned, reasons, self._context.clock()))
        metrics.MAINTAINED_HOSTS.labels("left_out").inc(number or 0)

    async def _note(self, reason: str | None, *, pauses: bool = False) -> None:
        if pauses or reason != self._maintenance.reason:
            await self._write(note_reason(self._owned, reason, self._context.clock(), pauses=pauses))

    async def _write(self, change: Work[T]) -> T:
        return await self._context.write(API, change)


def _key(host: MaintainedHost) -> tuple[str, str]:
    return host.maintenance, host.host


def _names(hosts: Sequence[HostInWave]) -> tuple[str, ...]:
    return tuple(each.row.host for each in hosts)


def _word(each: HostInWave) -> SaidWord:
    """Return the word on a host as it is stored, as far as its announcement needs it."""
    subject = Subject(each.row.cell, each.row.host)
    return SaidWord(subject, not each.disabled, None, each.row.changed_at)


def _why_stuck(progress: DrainProgress, moves: int) -> str:
    """Return why the instances of a host do not leave it. ``moves``: those from and to it."""
    if not progress.left:
        return MAY_COME
    numbers = "1 instance does" if progress.left == 1 else f"{progress.left:,} instances do"
    named = sorted(progress.staying, key=lambda each: each.reason is None)
    if named:
        why = f"instance {named[0].instance} is {named[0].state}"
        return f"{numbers} not leave it; {why}{'' if named[0].reason is None else f': {named[0].reason}'}"
    return f"{numbers} not leave it, and {moves or 'no'} moves {'do not go on' if moves else 'begin'}"

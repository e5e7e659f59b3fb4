"""Evacuates hosts that are silent and proved to be dead, as if an operator had asked for it.

Every super conductor observes the sessions of hosts for itself, and needs no lease for it: what it writes
counts only if the session of the host is still the one that it has seen stand still, and the uuids of moves
are made of that session. A command that powers a machine off is written down before it is run. A proof is a
row, so the evacuation goes on when its conductor is gone.
"""

import uuid
from collections.abc import Callable, Collection

import msgspec

from roost.conductor.backoff import Backoff
from roost.conductor.evacuation.fence_command import FenceCommand
from roost.conductor.evacuation.judgement import Judgement, judged
from roost.conductor.evacuation.options import EvacuationOptions
from roost.conductor.evacuation.silence import LONGEST_GAP, CellSilence
from roost.conductor.moves.departures import Asker, RetryTimes, ask_to_leave, go_on_without_host
from roost.model.departure import Departure
from roost.model.move import BY_COMMAND, BY_FENCE, DeathProof
from roost.model.service_version import ATTACHED_MOVES, FENCES, Feature
from roost.process.context import Context
from roost.process.metrics import catalogue as metrics
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.event_types import CloudEvent, EventKind
from roost.state.api_database.events import MarkedEvent, observe_events
from roost.state.api_database.tables import API
from roost.state.cell_database.host_work import SESSION
from roost.state.cell_database.silent_hosts import (
    DEAD,
    FENCING,
    UNPROVED,
    Outlook,
    SilentHost,
    begin_command,
    forget_silent,
    note_dead,
    note_unproved,
    read_outlook,
)
from roost.state.leases import Lease, Standstill, leases_of_kind
from roost.storage import StorageError

LOOK_SECONDS = 3.0
"""Seconds between two looks at the hosts of all cells."""

RETRIES = Backoff(first_seconds=60.0, longest_seconds=900.0)
"""The pauses before a command that has failed is run again for the same host."""

GRACE_SECONDS = 30.0
"""Seconds beside the time limit of a command after which another conductor runs it again."""

OF_EVACUATIONS = uuid.UUID("0d1b6d0e-3f5b-4c1f-8d6e-0b6f2a7c9e41")
"""The namespace of the uuids of moves that are asked for here."""


class _Cell:
    """The observations of one conductor of a cell, and the commands that it has under way there."""

    def __init__(self) -> None:
        self.silence = CellSilence()
        self.times = RetryTimes()
        self.commands: Standstill[str] = Standstill(LONGEST_GAP)
        self.running: set[str] = set()
        self.due: dict[str, float] = {}
        self.told: set[str] = set()


class DeadHosts:
    """The evacuations by itself of one super conductor.

    ``name``: of the conductor, for operators. ``command``: powers machines off; None: there is none.
    """

    def __init__(self, options: EvacuationOptions, command: FenceCommand | None, name: str) -> None:
        self._options = options
        self._command = command
        self._name = name
        self._cells: dict[str, _Cell] = {}

    async def run(
        self, context: Context, cells: Callable[[], Collection[str]], knows: Callable[[Feature], bool]
    ) -> None:
        """Look at the hosts of the cells that answer, for ever. ``knows``: whether all processes know a
        feature."""
        waits = False
        while True:
            if knows(FENCES):
                waits = False
                await self.look(context, cells(), attached=knows(ATTACHED_MOVES))
            else:
                if not waits:
                    values = {"service_version": FENCES.since}
                    context.log("no host is evacuated by itself before all processes can", values, "warning")
                waits = True
                self._cells.clear()
            await context.sleep(LOOK_SECONDS)

    async def look(self, context: Context, cells: Collection[str], *, attached: bool = True) -> None:
        """Look at the hosts of some cells once. ``attached``: whether instances with ports or accelerators
        may move."""
        await context.together([self._look_at(context, name, attached) for name in cells])

    async def _look_at(self, context: Context, name: str, attached: bool) -> None:
        cell = self._cells.setdefault(name, _Cell())
        database = f"cell/{name}"
        try:
            began = context.monotonic()
            sessions = await context.read(database, leases_of_kind(SESSION))
            ended = context.monotonic()
            cell.silence.look(sessions, began, ended)
            of_host = {each.host: each for each in sessions}
            silent = tuple(
                host for host in sorted(of_host) if cell.silence.seconds(host) >= self._options.after
            )
            began = context.monotonic()
            outlook = await context.read(database, read_outlook(silent))
            marks = {host: (row.state, row.epoch, row.tries) for host, row in outlook.known.items()}
            cell.commands.look(marks, began, context.monotonic())
            back = tuple(row for row in outlook.known.values() if not row.counts(of_host.get(row.host)))
            if back:
                await context.write(database, forget_silent(back))
                for row in back:
                    cell.due.pop(row.host, None)
            for host in silent:
                if outlook.leaving.get(host) or host in outlook.awaited:
                    await self._judge(context, name, cell, of_host[host], outlook)
            dead = [row for row in outlook.known.values() if row.state == DEAD and row not in back]
            for row in dead:
                if row.host in outlook.awaited:
                    await go_on_without_host(context, name, row.host, _proof_of(row))
                await self._ask(context, database, cell, row, outlook.leaving.get(row.host, []), attached)
            counting = [row for row in outlook.known.values() if row not in back]
        except StorageError as error:
            values = {"cell": name, "error": one_line(error)}
            context.log("hosts of a cell are evacuated later", values, "debug")
            return
        try:
            await self._tell(context, name, cell, counting)
        except StorageError as error:
            context.log("events of silent hosts are told later", {"error": one_line(error)}, "debug")

    async def _judge(
        self, context: Context, name: str, cell: _Cell, session: Lease, outlook: Outlook
    ) -> None:
        """Take a silent host for dead, have it powered off, or say why not. Raises `StorageError`."""
        host, database = session.host, f"cell/{name}"
        known = outlook.known.get(host)
        if known is not None and known.counts(session) and known.state == DEAD:
            return
        judgement = judged(session, cell.silence.seconds(host), outlook.told.get(host), self._options)
        row = SilentHost(
            host=host,
            epoch=session.epoch,
            counter=session.counter,
            state=UNPROVED,
            words=judgement.words,
            conductor=self._name,
            at=context.clock(),
        )
        match judgement:
            case Judgement("unproved"):
                await self._note_unproved(context, database, row)
            case Judgement("fence"):
                dead = msgspec.structs.replace(row, state=DEAD, kind=BY_FENCE)
                await self._note_dead(context, database, dead)
            case Judgement("command") if self._command is not None:
                if host not in cell.running and context.monotonic() >= cell.due.get(host, 0.0):
                    await self._begin_command(context, database, cell, row, known, self._command)

    async def _begin_command(
        self,
        context: Context,
        database: str,
        cell: _Cell,
        row: SilentHost,
        known: SilentHost | None,
        command: FenceCommand,
    ) -> None:
        """Have a machine powered off, unless another conductor does. Raises `StorageError`."""
        current = None if known is None or known.session != row.session else known
        if current is not None and current.state == FENCING:
            left = self._options.command_seconds + GRACE_SECONDS - cell.commands.still(row.host)
            if left > 0:
                return
        tries = 0 if current is None else current.tries
        words = "a command is to power its machine off"
        fencing = msgspec.structs.replace(row, state=FENCING, words=words)
        begun = await context.write(database, begin_command(fencing, tries))
        if begun is None:
            return
        if isinstance(begun, str):
            await self._note_unproved(context, database, msgspec.structs.replace(row, words=begun))
            return
        cell.running.add(row.host)
        fencing = msgspec.structs.replace(fencing, tries=begun)
        context.start(
            f"{database}/fence/{row.host}", self._power_off(context, database, cell, fencing, command)
        )

    async def _power_off(
        self, context: Context, database: str, cell: _Cell, row: SilentHost, command: FenceCommand
    ) -> None:
        """Run a command that was written down, and store its result."""
        try:
            result = await command.power_off(row.host)
            # For a conductor that stands still: its answer may be old, but the session would tell.
            if result.is_off:
                words = "powered off by the fence command"
                dead = msgspec.structs.replace(
                    row, state=DEAD, kind=BY_COMMAND, words=words, at=context.clock()
                )
                await self._note_dead(context, database, dead)
                return
            cell.due[row.host] = context.monotonic() + RETRIES.pause(row.tries)
            unproved = msgspec.structs.replace(row, state=UNPROVED, words=result.words)
            await self._note_unproved(context, database, unproved)
        except StorageError as error:
            # The next try finds the row as it was.
            values = {"host": row.host, "error": one_line(error)}
            context.log("the result of a fence command is not stored", values, "warning")
        finally:
            cell.running.discard(row.host)

    async def _note_unproved(self, context: Context, database: str, row: SilentHost) -> None:
        if await context.write(database, note_unproved(row)):
            metrics.SILENT_HOSTS.labels("unproved").inc()
            values = {"host": row.host, "cell": database.removeprefix("cell/"), "reason": row.words}
            context.log("a silent host is not evacuated", values, "warning")

    async def _note_dead(self, context: Context, database: str, row: SilentHost) -> None:
        noted = await context.write(database, note_dead(row))
        if isinstance(noted, str):
            unproved = msgspec.structs.replace(row, state=UNPROVED, kind=None, words=noted)
            await self._note_unproved(context, database, unproved)
        if noted is not True:
            return
        metrics.SILENT_HOSTS.labels("fenced" if row.kind == BY_FENCE else "powered_off").inc()
        values = {"host": row.host, "cell": database.removeprefix("cell/"), "proof": row.words}
        context.log("a silent host is proved to be dead: its instances are evacuated", values, "warning")

    async def _ask(
        self,
        context: Context,
        database: str,
        cell: _Cell,
        row: SilentHost,
        leaving: Collection[Departure],
        attached: bool,
    ) -> None:
        """Ask for the evacuations of the instances of a host that is dead. Raises `StorageError`."""
        asker = Asker("evacuation", OF_EVACUATIONS, f"{database}/{row.host}/{row.epoch}/{row.counter}")
        proof = _proof_of(row)
        for each in leaving:
            if cell.times.is_due(each, context.monotonic()):
                await ask_to_leave(
                    context, database, each, cell.times, asker, ("evacuate",), proof=proof, attached=attached
                )

    async def _tell(self, context: Context, name: str, cell: _Cell, rows: Collection[SilentHost]) -> None:
        """Write the events of hosts that are dead, or not evacuated, once each. Raises `StorageError`."""
        events = []
        for row in rows:
            if row.state == FENCING:
                continue
            kind: EventKind = "host_dead" if row.state == DEAD else "host_unproved"
            mark = "\n".join((name, row.host, kind, f"{row.epoch} {row.counter}", row.words))
            if mark not in cell.told:
                event = CloudEvent(at=row.at, kind=kind, cell=name, host=row.host, detail=row.words)
                events.append(MarkedEvent(mark, event))
        if events:
            await context.write(API, observe_events(tuple(events)))
            cell.told.update(each.mark for each in events)


def _proof_of(row: SilentHost) -> DeathProof:
    assert row.kind is not None
    return DeathProof(row.kind, row.words, row.at, row.session, by=row.conductor)

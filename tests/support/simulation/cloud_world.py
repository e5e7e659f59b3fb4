"""A cloud in simulated time: super conductors, two cells and cell0, and users who ask and delete."""

from collections.abc import Coroutine
from itertools import count
from typing import Any

import msgspec
import sqlalchemy as sa

from roost.agent.protocol.questions import Call
from roost.conductor.audit.rounds import SHARE, AuditOptions, audit, audit_tenure
from roost.conductor.backoff import CarryOptions
from roost.conductor.evacuation.dead_hosts import DeadHosts
from roost.conductor.evacuation.options import EvacuationOptions
from roost.conductor.instances.power import request_power
from roost.conductor.instances.rebuild import request_rebuild
from roost.conductor.instances.shelve import request_shelving, request_unshelving
from roost.conductor.moves.crossing_steps import Crossings
from roost.conductor.moves.crossings import carry_crossings
from roost.conductor.moves.requests import find_move, request_move, settle_move, stop_move
from roost.conductor.request_worker import RequestWorker
from roost.conductor.super_conductor import KIND
from roost.conductor.words.departures import empty_subjects
from roost.conductor.words.drains import watch_drains
from roost.model.instance import ASSIGNED, ERROR, STARTING, BuildRequest, ChangeRefused, Instance, Requester
from roost.model.move import DeathProof, Move, MoveKind, MoveRefused
from roost.model.move_states import SWITCHED
from roost.model.service_version import ATTACHMENTS
from roost.model.spec import Flavor
from roost.process.context import Context
from roost.state.api_database.audit import LEASE, read_audit_state, read_findings, read_repairs
from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.crossings import read_crossings
from roost.state.api_database.tables import (
    SCHEMA,
    build_requests,
    cell_mappings,
    instance_deletions,
    instance_mappings,
)
from roost.state.cell_database.leaving_halves import find_halves
from roost.state.cell_database.tables import SCHEMA as CELL_SCHEMA
from roost.state.leases import Tenure, keep_lease, watch_leases
from roost.storage import StorageError
from support.clouds import spec
from support.simulation.fences import BMC, BmcCommand, BmcService
from support.simulation.hosts import Host
from support.simulation.network import Handling
from support.simulation.placement import FOREIGN
from support.simulation.process import SCHEDULER, Process
from support.simulation.promises import check_history, check_row, check_story, promise
from support.simulation.world import ACTS, LEASES, World

CELLS = ("c1", "c2")
CONDUCTORS = "conductors"
"""The service that users ask: any of the super conductors."""

AUDITS = AuditOptions(every=15.0, settle=8.0, look=4.0, most_repairs=3)

OPERATOR = Requester("operator", "admin", "req-move")
USER = Requester("user", "project", "req-power")


class Accept(Call[bool], frozen=True):
    """A user asks for instances."""

    request: BuildRequest


class Delete(Call[frozenset[str]], frozen=True):
    """A user deletes instances; answers those that are known."""

    uuids: tuple[str, ...]


class Migrate(Call[Move | MoveRefused | None], frozen=True):
    """An operator moves an instance. ``confirms``: without another word. ``across``: to any cell."""

    uuid: str
    instance: str
    confirms: bool = True
    to_host: str | None = None
    forced: bool = False
    in_place: bool = False
    flavor: Flavor | None = None
    evidence: str = ""
    across: bool = False
    live: bool = False


def _kind_of(wanted: Migrate) -> MoveKind:
    if wanted.live:
        return "live_migrate"
    if wanted.evidence:
        return "evacuate"
    return "migrate" if wanted.flavor is None else "resize"


class Switch(Call[Instance | ChangeRefused | None], frozen=True):
    """A user stops an instance, or starts it again."""

    instance: str
    runs: bool


class Rebuild(Call[Instance | ChangeRefused | None], frozen=True):
    """A user has an instance made anew, from the same image."""

    word: str
    instance: str


class Shelve(Call[Instance | ChangeRefused | None], frozen=True):
    """A user shelves an instance."""

    word: str
    instance: str
    discards_disks: bool = False


class Unshelve(Call[Instance | ChangeRefused | None], frozen=True):
    """A user unshelves an instance."""

    consumer: str
    instance: str


class Settle(Call[Move | MoveRefused | None], frozen=True):
    """An operator confirms a move, or reverts it."""

    uuid: str
    confirm: bool


class Abort(Call[Move | MoveRefused | None], frozen=True):
    """An operator aborts a move."""

    uuid: str


class Refused(Exception):
    """A user has no answer, or an error."""


class Mapped(msgspec.Struct, frozen=True):
    """The cell of each instance, what is requested, and what is to be deleted."""

    def __call__(self, connection: sa.Connection) -> tuple[dict[str, str | None], list[str], list[str]]:
        cells = {row.instance_uuid: row.cell for row in connection.execute(sa.select(instance_mappings))}
        requests = list(connection.execute(sa.select(build_requests.c.request_id)).scalars())
        deletions = list(connection.execute(sa.select(instance_deletions.c.instance_uuid)).scalars())
        return cells, requests, deletions


class MapCells(msgspec.Struct, frozen=True):
    """Name the cells."""

    names: tuple[str, ...]

    def __call__(self, connection: sa.Connection) -> None:
        connection.execute(sa.insert(cell_mappings), [{"name": n, "database_url": n} for n in self.names])


class ConductorsService:
    """The super conductors, as users reach them."""

    patience = 60.0
    local = False
    repeats_late = True

    def __init__(self, world: "CloudWorld") -> None:
        self._world = world
        self._asked: set[str] = set()

    def handle(self, asker: Process, question: Any) -> Handling:
        """Let one of the conductors that run answer. A request that is sent again has another id."""
        if isinstance(question, Accept):
            if question.request.request_id in self._asked:
                raise Refused
            self._asked.add(question.request.request_id)
        up = [process for process in self._world.supers if process.up]
        process = self._world.random.choice(up or self._world.supers)
        working = process.memory.get("working")
        if not working:
            return Handling(process, process.context.sleep(0.0))
        return Handling(process, self._answer(process.context, working, question))

    def unreachable(self, unknown: bool) -> Exception:
        """What a user sees."""
        return Refused()

    async def _answer(self, context: Context, working: RequestWorker, question: Any) -> Any:
        match question:
            case Migrate(uuid, instance, confirms, to_host, forced, in_place, flavor, evidence, across, _):
                return await self._moved(
                    request_move(
                        context,
                        uuid=uuid,
                        instance=instance,
                        kind=_kind_of(question),
                        by=OPERATOR,
                        to_host=to_host,
                        forced=forced,
                        in_place=in_place,
                        confirms=confirms,
                        flavor=flavor,
                        proof=DeathProof("operator", evidence, 0.0) if evidence else None,
                        across=across,
                    )
                )
            case Switch(instance, runs):
                return await self._moved(request_power(context, instance=instance, runs=runs, by=USER))
            case Rebuild(word, instance):
                asked = request_rebuild(context, instance=instance, image=None, word=word, by=USER)
                return await self._moved(asked)
            case Shelve(word, instance, discards):
                shelving = request_shelving(
                    context, instance=instance, discards_disks=discards, word=word, by=USER
                )
                return await self._moved(shelving)
            case Unshelve(consumer, instance):
                back = request_unshelving(context, instance=instance, consumer=consumer, by=USER)
                return await self._moved(back)
            case Settle(uuid, confirm):
                return await self._moved(self._settled(context, uuid, confirm))
            case Abort(uuid):
                return await self._moved(self._aborted(context, uuid))
            case Accept(request):
                await working.accept(request)
                return True
            case Delete(uuids):
                return frozenset(await working.delete(uuids))
        raise AssertionError(f"conductors are not asked {question!r}")

    async def _settled(self, context: Context, uuid: str, confirm: bool) -> Move | MoveRefused | None:
        found = await find_move(context, self._world.cells, uuid)
        return None if found is None else await settle_move(context, *found, confirm=confirm)

    async def _aborted(self, context: Context, uuid: str) -> Move | MoveRefused | None:
        found = await find_move(context, self._world.cells, uuid)
        return None if found is None else await stop_move(context, found[0], uuid, OPERATOR.user_id)

    async def _moved(self, answer: Coroutine[Any, Any, object]) -> Any:
        try:
            return await answer
        except StorageError as error:
            raise Refused from error


class CloudWorld(World):
    """Two super conductors, two cells with two hosts each, and some requests."""

    doubles_claims = False
    """Whether claims arrive a second time after the end of their instances, which the audit repairs."""

    audits = True
    """Whether the super conductors audit."""

    evacuations: EvacuationOptions | None = None
    """The options by which the super conductors evacuate dead hosts by themselves."""

    drains = False
    """Whether the super conductors move instances away from what an operator drains."""

    breaks = False
    """Whether a test breaks what the audit repairs."""

    def __init__(self, *arguments: Any, requests: int = 3, audits: bool | None = None, **named: Any) -> None:
        if audits is not None:
            self.audits = audits
        super().__init__(*arguments, **{"cells": CELLS, "conductors": 1, "hosts": 2} | named)
        self.add_database("api", SCHEMA)
        self.add_database(f"cell/{CELL0}", CELL_SCHEMA)
        self._add_conductor("cell0-conductor", CELL0)
        self.network.databases["api"].run(MapCells((CELL0, *self.cells)), True)
        self.network.services[CONDUCTORS] = ConductorsService(self)
        self.network.services[SCHEDULER].repeats_late = self.doubles_claims
        self.supers = [Process(f"super{number}", self.network, self._begin_super) for number in range(2)]
        self.conductors[:0] = self.supers
        self.bmcs = BmcService(lambda: self.machines, lambda: self._racks)
        self.network.services[BMC] = self.bmcs
        self._racks = Process("racks", self.network, lambda process: None)
        self._user = Process("user", self.network, lambda process: None)
        self._requests = requests
        self._numbers = count()

    def _begin_super(self, process: Process) -> None:
        tenure = Tenure(f"{KIND}/{process.name}/{process.life}", KIND, process.name, times=LEASES)
        working = RequestWorker(process.context, tenure, CarryOptions())
        process.memory["working"] = working
        process.run("keeps", keep_lease(process.context, "api", tenure))
        process.run("watches", watch_leases(process.context, "api", KIND, tenure.times))
        process.run("seeks", working.seek())
        process.run("deletes", working.carry_deletions())
        process.run("frees", working.free_late_claims())
        crossings = Crossings(tenure, lambda: self.cells, self.move_limits)
        process.run("carries crossings", carry_crossings(process.context, crossings))
        if self.drains:
            ready = empty_subjects(process.context, lambda: self.cells, self.move_limits, lambda _: True)
            process.run("empties", ready)
            process.run("watches drains", watch_drains(process.context, lambda: self.cells))
        if self.evacuations is not None:
            dead = DeadHosts(self.evacuations, BmcCommand(process.context), process.name)
            process.memory["dead hosts"] = dead
            process.run("evacuates", dead.run(process.context, lambda: self.cells, lambda _: True))
        if not self.audits:
            return
        auditing = audit_tenure(process.name, LEASES)
        process.run("keeps the audit", keep_lease(process.context, "api", auditing))
        process.run("watches the audit", watch_leases(process.context, "api", LEASE, LEASES))
        process.run("audits", audit(process.context, auditing, AUDITS))

    @property
    def all_cells(self) -> tuple[str, ...]:
        """The names of all cells, cell0 among them."""
        return *self.cells, CELL0

    # What happens

    def crash_super(self) -> None:
        """A super conductor dies."""
        self._crash(self.random.choice(self.supers))

    def stop_super(self) -> None:
        """A super conductor is stopped, often past its lease."""
        self._stop(self.random.choice(self.supers))

    def cut_off_super(self) -> None:
        """A super conductor reaches some of its databases and services no more."""
        self._cut_off(self.random.choice(self.supers))

    def die(self) -> None:
        """A host loses its power; an operator sees it and evacuates its instances; it is back later."""
        agent = self.random.choice(self.agents)
        host = self.guests.hosts[agent.name.removesuffix("-agent")]
        agent.crash()
        host.die()
        self._user.run(f"operator of {host.name} at {self.loop.now}", self._evacuate(host, agent))
        self.loop.after(self.random.choice((40.0, 120.0, 200.0)), agent.start)

    async def _evacuate(self, host: Host, agent: Process) -> None:
        context = self._user.context
        # Before its session is free nothing is evacuated.
        await context.sleep(66.0)
        there = [row for cell in self.cells for row in self.rows(cell).values() if row.host == host.name]
        for row in there:
            if row.state not in (ASSIGNED, STARTING) and not agent.up:
                move = f"evacuation{next(self._numbers)}-{row.uuid}"
                await self._ask_again(Migrate(move, row.uuid, evidence="its lamps are dark"), tries=2)

    # Users

    def plan(self) -> None:
        self._user.start()
        self._racks.start()
        for number in range(self._requests):
            self._user.run(f"user{number}", self._use(number))

    async def _use(self, number: int) -> None:
        """Ask for instances, and perhaps delete some of them, with or without knowing whether they exist."""
        random, context = self.random, self._user.context
        await context.sleep(random.uniform(0.5, self.kind.seconds / 2))
        uuids = tuple(f"instance{next(self._numbers)}" for _ in range(random.choice((1, 1, 2))))
        request = BuildRequest(
            request_id=f"request{number}",
            # The cell keeps a shelved instance's port only if it knows that there is one.
            spec=spec(1, needs_version=ATTACHMENTS.since if self.kind.shelves else 0),
            instances=uuids,
            min_count=random.choice((1, len(uuids))),
        )
        self.doubtful.update(uuids)
        try:
            await context.ask(CONDUCTORS, Accept(request))
        except Exception:
            await context.sleep(random.choice((0.0, 3.0)))
        else:
            self.network.note("user", "is promised", *uuids)
            self.accepted.update(uuids)
            self.doubtful.difference_update(uuids)
        for uuid in uuids:
            if self.kind.moves and random.random() < self.kind.moves:
                self._user.run(f"operator of {uuid}", self._operate(uuid))
            if self.kind.powers and random.random() < self.kind.powers:
                self._user.run(f"user of {uuid}", self._switch(uuid))
            if self.kind.shelves and random.random() < self.kind.shelves:
                self._user.run(f"saver of {uuid}", self._shelve(uuid))
        gone = tuple(uuid for uuid in uuids if random.random() < self.kind.deletes)
        if not gone:
            return
        await context.sleep(random.choice((0.0, 0.1, 1.0, 8.0, 20.0)))
        self.doubtful.update(gone)
        for _ in range(random.choice((1, 4))):
            try:
                known = await context.ask(CONDUCTORS, Delete(gone))
            except Exception:
                await context.sleep(random.choice((0.1, 3.0)))
                continue
            if known is not None:
                self.network.note("user", "is promised the end of", *sorted(known))
                self.deleted.update(known)
            break

    async def _operate(self, uuid: str) -> None:
        """Move an instance once or twice, and say what is to become of the move, or leave it open."""
        random, context = self.random, self._user.context
        for number in range(random.choice((1, 2))):
            await context.sleep(random.choice((0.1, 3.0, 12.0)))
            move, confirms = f"move{number}-{uuid}", random.random() < 0.5
            flavor = random.choice((None, None, spec(random.choice((1, 2))).flavor))
            across = random.random() < self.kind.across
            # Hosts of its own cell would be preferred.
            to_host = random.choice([*self.guests.hosts]) if across else None
            in_place = flavor is not None and random.random() < 0.6
            asked = Migrate(move, uuid, confirms, to_host, in_place=in_place, flavor=flavor, across=across)
            if self.kind.live and random.random() < self.kind.live:
                asked = Migrate(move, uuid, live=True)
                confirms = True
            answer = await self._ask_again(asked)
            if isinstance(answer, Move) and random.random() < 0.2:
                await context.sleep(random.choice((0.0, 0.1, 0.5, 2.0)))
                await self._ask_again(Abort(move), tries=2)
            if not isinstance(answer, Move) or confirms:
                continue
            await context.sleep(random.choice((5.0, 20.0, 40.0)))
            if random.random() < 0.8:
                await self._ask_again(Settle(move, random.random() < 0.4))

    async def _switch(self, uuid: str) -> None:
        """Stop an instance, start it again and so on, now and then before the word before is carried out; or
        have it made anew."""
        random, context = self.random, self._user.context
        for number in range(random.choice((1, 2, 3, 4))):
            await context.sleep(random.choice((0.1, 0.5, 3.0, 12.0)))
            if random.random() < 0.25:
                await self._ask_again(Rebuild(f"rebuild{number}-{uuid}", uuid), tries=3)
            else:
                await self._ask_again(Switch(uuid, number % 2 == 1), tries=3)

    async def _shelve(self, uuid: str) -> None:
        """Shelve an instance and unshelve it, once or several times, now and then before it is shelved."""
        random, context = self.random, self._user.context
        for number in range(random.choice((1, 2, 3))):
            await context.sleep(random.choice((0.1, 3.0, 12.0)))
            shelve = Shelve(f"shelve{number}-{uuid}", uuid, random.random() < 0.2)
            await self._ask_again(shelve, tries=4)
            await context.sleep(random.choice((0.1, 0.5, 3.0, 12.0)))
            if random.random() < 0.85:
                await self._ask_again(Unshelve(f"consumer{number}-{uuid}", uuid), tries=4)

    async def _ask_again(self, question: Any, tries: int = 6) -> Any:
        """The answer to a question that is asked until it is allowed, or often enough."""
        random, context = self.random, self._user.context
        for _ in range(tries):
            try:
                answer = await context.ask(CONDUCTORS, question)
            except Exception:
                await context.sleep(random.choice((0.1, 3.0)))
                continue
            if isinstance(answer, Move | Instance):
                return answer
            await context.sleep(4.0)
        return None

    # What was promised

    def settled(self) -> bool:
        cells, requests, deletions = self.read("api", Mapped())
        ended = {
            uuid for cell in self.all_cells for uuid, row in self.rows(cell).items() if row.state == ERROR
        }
        rows = {uuid: row for cell in self.all_cells for uuid, row in self.rows(cell).items()}
        names = {row.consumer: uuid for uuid, row in rows.items()}
        holding = {names.get(each, each) for each in self.placement.consumers()}
        late = holding - (cells.keys() - ended) - {FOREIGN}
        late |= self.read("api", read_crossings()).keys() - self.waiting()
        over = not requests and not deletions and not late and not self._user.running
        return over and super().settled()

    def waiting(self) -> set[str]:
        """The moves that wait for a word."""
        return {
            uuid for cell in self.cells for uuid, each in self.moves(cell).items() if each.state == SWITCHED
        }

    def check(self) -> None:
        super().check()
        if not self.audits:
            return
        self.wait_for_rounds(2)
        found = self.read("api", read_findings(0, 10))
        promise(not found, f"the audit finds what is not there: {found}")
        repairs = self.read("api", read_repairs(None, 10))
        promise(
            self.doubles_claims or self.breaks or not repairs, f"repairs that nothing provoked: {repairs}"
        )
        open_repairs = [each for each in repairs if each.result is None and not self.kind.weather.crashes]
        promise(not open_repairs, f"repairs without a result: {open_repairs}")

    def wait_for_rounds(self, number: int) -> None:
        """Let the audit begin and end so many rounds from now on.

        Rounds have a share of the time: one that a stopped process ended late delays the next so much longer.
        """
        wanted = self.read("api", read_audit_state()).begun + number
        until = self.loop.now + self.loop.now / SHARE + 100.0 * number
        while self.read("api", read_audit_state()).ended < wanted:
            promise(self.loop.now < until, "the audit makes no rounds")
            self.loop.run(self.loop.now + 2.0, ACTS)

    def check_known(self, rows: dict[str, Instance]) -> None:
        for uuid, row in self.rows(CELL0).items():
            promise(uuid not in rows, f"{uuid} is in two cells")
            rows[uuid] = row
            check_row(self, row)
            check_history(self, CELL0, row)
        for uuid in rows.keys() | self.deleted:
            check_story(self, uuid)
        cells, requests, deletions = self.read("api", Mapped())
        promise(not requests, f"requests are never finished: {requests}")
        promise(not deletions, f"deletions never end: {deletions}")
        crossings, waiting = self.read("api", read_crossings()), self.waiting()
        promise(crossings.keys() <= waiting, f"crossings never end: {crossings}")
        for cell in self.cells:
            halves = [each for each in self.read(f"cell/{cell}", find_halves()) if each.move not in waiting]
            promise(not halves, f"halves of moves are left in {cell}: {halves}")
        promise(cells.keys() == rows.keys(), f"mappings of {sorted(cells)}, rows of {sorted(rows)}")
        for name in (*self.cells, CELL0):
            for uuid in self.rows(name):
                promise(cells[uuid] == name, f"{uuid} is in {name} and mapped to {cells[uuid]}")

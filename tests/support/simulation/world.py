"""The simulated world: cells with their real conductors, hosts with agents, a real fleet; faults; promises.

What happens is drawn from a seed. The worlds of `support.simulation.cell_world` and `…cloud_world` say how
instances come and go.
"""

import gc
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from roost.conductor.agent_endpoint.endpoint import AgentEndpoint, EndpointTimes
from roost.conductor.backoff import Backoff
from roost.conductor.cell_conductor import KIND, routines_of
from roost.conductor.cell_work import CellQueue
from roost.conductor.time_limits import TimeLimits
from roost.model.fence import Fence
from roost.model.instance import (
    ACTIVE,
    IN_PLACE,
    STOPPED,
    UNSETTLED,
    Instance,
)
from roost.model.move import Move
from roost.model.move_states import SWITCHED
from roost.model.names import provider_uuid
from roost.state.api_database.tables import API
from roost.state.cell_database.host_work import hosts_with_orders
from roost.state.cell_database.move_limits import MoveLimits
from roost.state.cell_database.moves import MoveFilter, list_moves
from roost.state.cell_database.reshapes import read_reshape_marks
from roost.state.cell_database.rows import INSTANCES, instance_of
from roost.state.cell_database.tables import SCHEMA as CELL_SCHEMA
from roost.state.leases import LeaseTimes, Tenure
from support.simulation import hosts, placement
from support.simulation.agents import (
    DriverService,
    EndpointService,
    StateService,
    begin_agent,
    endpoint_of,
)
from support.simulation.databases import SimulatedDatabase
from support.simulation.fences import Machine, WatchdogService
from support.simulation.hosts import VCPUS, Guests, Host
from support.simulation.kinds import Kind
from support.simulation.loop import Loop, Stuck
from support.simulation.network import BrokenPromise, Network
from support.simulation.placement import SimulatedPlacement
from support.simulation.process import (
    CELL,
    DRIVER,
    PLACEMENT,
    PROVIDERS,
    SCHEDULER,
    STATE,
    WATCHDOG,
    Process,
)
from support.simulation.promises import check_history, check_moves, check_providers, check_row, promise
from support.simulation.services import PlacementService, ProvidersService, SchedulerService
from support.simulation.weather import CALM

POLL_SECONDS = 3.0
LEASES = LeaseTimes(look=2.0)
LOOK_SECONDS = 2.0
"""Idle looks are most of what a schedule costs, so there are fewer than in a cloud."""

SETTLED_WITHIN = 300.0
"""Seconds of calm after which nothing may be under way any more."""

HARMLESS_SECONDS = 30.0
"""Seconds of calm after which no harm may be done any more to what databases have lost."""

NOTICED_WITHIN = 10.0
"""Seconds after which each process has noticed what a message did that arrived late."""

ACTS = 200_000
"""Acts of a schedule at most."""


class Every(msgspec.Struct, frozen=True):
    """All instances of a cell, by uuid."""

    def __call__(self, connection: sa.Connection) -> dict[str, Instance]:
        return {row.uuid: instance_of(row) for row in connection.execute(INSTANCES)}


class Faults(NamedTuple):
    """Faults that are put in on purpose.

    ``work``: changes works before they run. ``question``: changes what services are asked. ``confirms``:
    whether agents ask before they start a guest. ``generations``: whether placement compares the
    generations of consumers. ``tokens``: whether a host receives only guests for whose attempt it is ready.
    """

    work: Callable[[str, Any], Any] | None = None
    question: Callable[[str, Any], Any] | None = None
    confirms: bool = True
    generations: bool = True
    tokens: bool = True


class World:
    """One schedule of a kind, from one seed.

    ``cells``: the names of those with hosts. ``conductors`` and ``hosts``: so many for each of them.
    ``vcpus``: those of each host. ``move_limits``: as many moves may be under way at once. ``fence``: of each
    agent. ``watchdog``: whether machines have one, by default if the fence says so.
    """

    confirm_hours = 24.0
    """Hours after which a move is confirmed by itself."""

    def __init__(
        self,
        kind: Kind,
        seed: int,
        faults: Faults = Faults(),  # noqa: B008 - it is immutable
        *,
        cells: Sequence[str] = ("c1",),
        conductors: int = 2,
        hosts: int = 3,
        vcpus: int = VCPUS,
        move_limits: MoveLimits = MoveLimits(),  # noqa: B008 - it is frozen
        fence: Fence | None = None,
        watchdog: bool | None = None,
    ) -> None:
        self.kind = kind
        self.fence = fence
        self.has_watchdogs = fence is not None and fence.guarded if watchdog is None else watchdog
        self.machines: dict[str, Machine] = {}
        self.random = Random(seed)
        self.faults = faults
        self.cells = tuple(cells)
        self.vcpus = vcpus
        self.move_limits = move_limits
        self.loop = Loop()
        self.network = Network(self.loop, self.random)
        self.network.on_crash = self.restart
        self.network.defective_work = faults.work
        self.network.defective_question = faults.question
        self.guests = Guests(self.loop.after)
        self.placement = SimulatedPlacement(self.random, self.faults.generations)
        self.network.services[SCHEDULER] = SchedulerService(self.placement)
        self.network.services[PLACEMENT] = PlacementService(self.placement)
        self.network.services[PROVIDERS] = ProvidersService(self.placement)
        self.conductors: list[Process] = []
        self.servers: dict[str, list[Process]] = {cell: [] for cell in self.cells}
        """The conductors of each cell, which serve its agents."""
        self.agents: list[Process] = []
        for cell in self.cells:
            self.add_database(f"cell/{cell}", CELL_SCHEMA)
            for number in range(conductors):
                self._add_conductor(f"{cell}-conductor{number}", cell)
            for number in range(hosts):
                self._add_host(f"{cell}-host{number}", cell)
        self.placement.add_foreign(provider_uuid(f"{self.cells[0]}-host0"))
        self.accepted: set[str] = set()
        """Instances that must come to an end."""
        self.deleted: set[str] = set()
        """Instances whose deletion was promised."""
        self.doubtful: set[str] = set()
        """Instances of which the user had no answer: they may be there or not."""

    @property
    def processes(self) -> list[Process]:
        """All processes that crash and stop."""
        return [*self.conductors, *self.agents]

    def add_database(self, name: str, *schemas: Any) -> None:
        """Add a database that is empty."""
        database = SimulatedDatabase(name, schemas, lambda: self.loop.now)
        database.keeps_snapshots = self.kind.fails_over
        self.network.databases[name] = database

    def _add_host(self, name: str, cell: str) -> None:
        node = provider_uuid(name)
        self.placement.add_host(name, node, cell, self.vcpus)
        host = Host(name, node, cell, self.guests, self.random, self.network.note, self.vcpus)
        host.failing = self.kind.failing
        host.unstoppable = self.kind.unstoppable
        host.breaking = self.kind.breaking
        host.has_tokens = self.faults.tokens
        process = Process(
            f"{name}-agent", self.network, lambda process: begin_agent(process, host, self.fence)
        )
        machine = self.machines[name] = Machine(host, process)
        if self.fence is not None:
            process.rate = self.random.uniform(0.992, 1.008)
            seconds = self.fence.stop_seconds / 2 if self.has_watchdogs else None
            process.services[WATCHDOG] = WatchdogService(machine, seconds)
        process.services[DRIVER] = DriverService(host)
        process.services[STATE] = StateService(host)
        process.services[CELL] = EndpointService(cell, lambda: self.servers[cell], self.faults.confirms)
        self.agents.append(process)

    def _add_conductor(self, name: str, *cells: str) -> None:
        def begin(process: Process) -> None:
            for cell in cells:
                self.conduct(process, cell)

        process = Process(name, self.network, begin)
        self.conductors.append(process)
        for cell in cells:
            self.servers.setdefault(cell, []).append(process)

    def conduct(self, process: Process, cell: str) -> None:
        """Start the coroutines of a cell's conductor and of its endpoint in a process."""
        tenure = Tenure(f"{KIND}/{process.name}/{process.life}", KIND, process.name, times=LEASES)
        work = CellQueue(cell, tenure, Backoff(), self.move_limits)
        limits = TimeLimits(
            build_seconds=self.kind.build_seconds,
            destroy_seconds=60.0,
            confirm_hours=self.confirm_hours,
        )
        for number, routine in enumerate(routines_of(process.context, work, limits, POLL_SECONDS)):
            process.run(f"{cell}.{number}", routine)
        times = EndpointTimes(build=self.kind.build_seconds, look=LOOK_SECONDS, alone=LOOK_SECONDS)
        endpoint = AgentEndpoint(process.context, cell, times)
        process.memory[endpoint_of(cell)] = endpoint
        for number, routine in enumerate(endpoint.routines()):
            process.run(f"{cell}.endpoint{number}", routine)

    # The schedule

    def run(self) -> None:
        """Raises: `BrokenPromise`."""
        # A schedule makes many objects that live as long as it does: to look for garbage among them again
        # and again would be a third of its time.
        gc.disable()
        try:
            self._run()
        except BrokenPromise:
            raise
        except (AssertionError, Stuck) as error:
            raise BrokenPromise(f"broken on the way: {error!r}") from error
        finally:
            gc.enable()
            self.network.close()

    def _run(self) -> None:
        for process in self.processes:
            self.loop.after(self.random.uniform(0.0, 2.0), process.start)
        self.network.weather = self.kind.weather
        self.plan()
        for _ in range(self.kind.number):
            event = getattr(self, self.random.choice(self.kind.events))
            self.loop.after(self.random.uniform(0.0, self.kind.seconds), event)
        self.loop.run(self.kind.seconds, ACTS)
        self.finish()

    def finish(self) -> None:
        """End all faults, let everything come to its end, and see whether every promise was kept."""
        self.calm()
        self._settle()
        # What is late may still arrive, and nothing may come of it.
        self.loop.run(max(self.loop.now, self.network.last_arrival) + NOTICED_WITHIN, ACTS)
        self._settle()
        if self.kind.fails_over:
            self.check_harmless()
        else:
            self.check()

    def _settle(self) -> None:
        ends = self.loop.now + (HARMLESS_SECONDS if self.kind.fails_over else SETTLED_WITHIN)
        while self.loop.now < ends and not self.settled():
            self.loop.run(self.loop.now + 2.0, ACTS)

    def plan(self) -> None:
        """Plan what users do."""
        raise NotImplementedError

    def calm(self) -> None:
        """All faults end."""
        self.network.note("world", "is calm")
        self.network.weather = CALM
        self.network.cut.clear()
        for database in self.network.databases.values():
            database.up = True
        for host in self.guests.hosts.values():
            host.failing = host.unstoppable = host.breaking = 0.0
        for process in self.processes:
            process.go_on()
            process.start()

    def settled(self) -> bool:
        """Whether nothing is under way."""
        return (
            all(self._is_settled(row) for cell in self.cells for row in self.rows(cell).values())
            and not any(
                self.read(f"cell/{cell}", hosts_with_orders())
                or self.read(f"cell/{cell}", read_reshape_marks())
                for cell in self.cells
            )
            and all(self.is_shaped(host) for host in self.guests.hosts.values())
        )

    def moves(self, cell: str) -> dict[str, Move]:
        """All moves of a cell, also those that have ended."""
        found: list[Move] = self.read(f"cell/{cell}", list_moves(MoveFilter(), 1000))
        return {each.uuid: each for each in found}

    def _is_settled(self, row: Instance) -> bool:
        """Whether an instance is in a state that lasts. Of a guest that vanished, or was started by hand, its
        host has yet to tell."""
        if row.state in IN_PLACE and row.move is None:
            differs = bool(self.guests.running(row.uuid)) is not (row.state == ACTIVE)
        else:
            differs = row.state == ACTIVE and not self.guests.running(row.uuid)
        return row.state not in UNSETTLED and not differs and not self._is_moving(row)

    def _is_moving(self, row: Instance) -> bool:
        """Whether a move of an instance goes on by itself."""
        if row.move is None:
            return False
        moves = {uuid: each for cell in self.cells for uuid, each in self.moves(cell).items()}
        return moves[row.move].state != SWITCHED

    def is_shaped(self, host: Host) -> bool:
        """Whether placement has the providers of a host, and its CPUs, where its driver has them."""
        there = self.placement.tree(host.node)
        return there == self.expected_tree(host) and self.placement.cpus(host.node) == {host.provider}

    def expected_tree(self, host: Host) -> dict[str, str | None]:
        """The providers of a host by name, each with its parent."""
        name = host.name
        expected = {name: None, f"{name}-nic": name, f"{name}-a": name}
        expected[f"{name}-b"] = f"{name}-{host.plugged}" if host.plugged else name
        return expected

    # What happens

    def restart(self, process: Process) -> None:
        """Start a process some time after it crashed."""
        self.loop.after(self.random.choice((0.1, 2.0, 15.0)), process.start)

    def crash(self) -> None:
        """A conductor dies."""
        self._crash(self.random.choice(self.conductors))

    def crash_agent(self) -> None:
        """An agent dies."""
        self._crash(self.random.choice(self.agents))

    def _crash(self, process: Process) -> None:
        process.crash()
        self.restart(process)

    def stop(self) -> None:
        """A conductor is stopped, often past its lease."""
        self._stop(self.random.choice(self.conductors))

    def stop_agent(self) -> None:
        """An agent is stopped."""
        self._stop(self.random.choice(self.agents))

    def _stop(self, process: Process) -> None:
        process.stop()
        self.loop.after(self.random.choice((1.0, 12.0, 30.0)), process.go_on)

    def cut_off(self) -> None:
        """A conductor reaches some of its databases and services no more."""
        self._cut_off(self.random.choice(self.conductors))

    def cut_off_agent(self) -> None:
        """An agent reaches its cell no more."""
        self._cut_off(self.random.choice(self.agents))

    def _cut_off(self, process: Process) -> None:
        names = [*self.network.databases, *self.network.services, *process.services]
        pairs = {(process.name, name) for name in names if self.random.random() < 0.7}
        self.network.note(process.name, "is cut off from", sorted(name for _, name in pairs))
        self.network.cut |= pairs
        self.loop.after(self.random.choice((1.0, 12.0, 40.0)), self.network.cut.difference_update, pairs)

    def _agent_with_guests(self) -> Process:
        """An agent whose host has guests, if there is one."""
        hosts = self.guests.hosts
        used = [each for each in self.agents if len(hosts[each.name.removesuffix("-agent")].guests) > 1]
        return self.random.choice(used or self.agents)

    def isolate_agent(self) -> None:
        """An agent reaches its cell no more, often for longer than its fence."""
        agent = self._agent_with_guests()
        self.network.note(agent.name, "is cut off from", [CELL])
        self.network.cut.add((agent.name, CELL))
        seconds = self.random.choice((20.0, 120.0, 250.0))
        self.loop.after(seconds, self.network.cut.discard, (agent.name, CELL))

    def freeze_agent(self) -> None:
        """An agent stands still, often for longer than its fence."""
        agent = self._agent_with_guests()
        agent.stop()
        self.loop.after(self.random.choice((5.0, 20.0, 120.0, 250.0)), agent.go_on)

    def kill_agent(self) -> None:
        """An agent dies, and is started again later, often after the time of its fence."""
        agent = self._agent_with_guests()
        agent.crash()
        self.loop.after(self.random.choice((5.0, 20.0, 120.0, 250.0)), agent.start)

    def database_away(self) -> None:
        """A database is stopped."""
        database = self.random.choice(list(self.network.databases.values()))
        self.network.note(database.name, "is away")
        database.up = False
        self.loop.after(self.random.choice((0.5, 5.0, 30.0)), setattr, database, "up", True)

    def fail_over(self) -> None:
        """The database of a cell goes on as a standby that lacks the last seconds.

        Not the API database: with a mapping it forgets that an instance was handed to a cell, and the next
        owner of the request places it again. Only a comparison of all cells would tell.
        """
        cells = [each for each in self.network.databases.values() if each.name != API]
        database = self.random.choice(cells)
        seconds = database.fail_over(self.random.choice((0.3, 1.0, 5.0)))
        self.network.note(database.name, "is taken back by", seconds)

    def clock(self) -> None:
        """The wall clock of a process is stepped."""
        process = self.random.choice(self.processes)
        process.offset += self.random.uniform(-20_000.0, 20_000.0)
        self.network.note(process.name, "has a clock that is off by", process.offset)

    def vanish(self) -> None:
        """A guest vanishes."""
        host = self.random.choice(list(self.guests.hosts.values()))
        guests = [guest for guest in host.guests if guest != hosts.FOREIGN]
        if guests:
            host.lose(self.random.choice(guests))

    def wake(self) -> None:
        """A guest that its user has stopped is started by hand."""
        rows = [row for cell in self.cells for row in self.rows(cell).values()]
        stopped = [row for row in rows if row.state == STOPPED and row.move is None]
        there = [row for row in stopped if row.uuid in self.guests.hosts[row.host].stopped]
        if there:
            row = self.random.choice(there)
            self.guests.hosts[row.host].wake(row.uuid)

    def replug(self) -> None:
        """A device of a host is below another provider from now on."""
        host = self.random.choice(list(self.guests.hosts.values()))
        host.plugged = "" if host.plugged else "a"

    def reshape(self) -> None:
        """The CPUs of a host become another provider's; its agent reads that at its next start."""
        agent = self.random.choice(self.agents)
        agent.crash()
        host = self.guests.hosts[agent.name.removesuffix("-agent")]
        host.has_cells = not host.has_cells
        self.network.note(host.name, "has its CPUs at", host.provider)
        self.restart(agent)

    # What was promised

    def read(self, database: str, work: Any) -> Any:
        """What a database has now."""
        return self.network.databases[database].run(work, False)

    def rows(self, cell: str) -> dict[str, Instance]:
        """All instances of a cell."""
        rows: dict[str, Instance] = self.read(f"cell/{cell}", Every())
        return rows

    def check(self) -> None:
        """Raises: `BrokenPromise`."""
        rows: dict[str, Instance] = {}
        for cell in self.cells:
            for uuid, row in self.rows(cell).items():
                promise(uuid not in rows, f"{uuid} is in two cells")
                rows[uuid] = row
                check_row(self, row)
                check_history(self, cell, row)
        self.check_known(rows)
        waiting = check_moves(self, rows)
        known = self.accepted | self.doubtful | self.deleted
        names = {row.consumer: uuid for uuid, row in rows.items()}
        consumers = {names.get(each, each): held for each, held in self.placement.consumers().items()}
        if self.kind.shelves:
            self.check_emptied()
        for uuid in known - rows.keys():
            gone = uuid in self.deleted or uuid in self.doubtful
            promise(gone, f"{uuid} is forgotten")
            promise(uuid not in consumers, f"{uuid} is gone and holds {consumers.get(uuid)}")
            promise(not self.guests.running(uuid), f"{uuid} is gone and runs")
            promise(uuid not in self.guests.ports, f"{uuid} is gone and has {self.guests.ports.get(uuid)}")
            promise(uuid not in self.guests.disks, f"{uuid} is gone and has a disk")
        for uuid in rows.keys() & self.deleted:
            raise BrokenPromise(f"{uuid} is deleted and is {rows[uuid].state}")
        strange = consumers.keys() - known - waiting.keys() - {placement.FOREIGN}
        promise(not strange, f"consumers without an instance: {strange}")
        self.check_foreign()
        for host in self.guests.hosts.values():
            strange = host.guests.keys() - known - {hosts.FOREIGN}
            promise(not strange, f"guests without an instance on {host.name}: {strange}")
            check_providers(self, host)

    def check_emptied(self) -> None:
        """Check that no consumer holds anything after it was emptied. Raises: `BrokenPromise`."""
        again = self.placement.consumers().keys() & {*self.placement.emptied}
        promise(not again, f"consumers that were emptied hold something again: {again}")

    def check_harmless(self) -> None:
        """Check what must be kept whatever databases have lost. Raises: `BrokenPromise`.

        That nothing is started twice is checked when it is started.
        """
        self.check_foreign()
        wanted = self.accepted - self.deleted - self.doubtful - self.guests.lost
        for uuid in wanted & self.guests.started:
            promise(bool(self.guests.running(uuid)), f"the guest of {uuid} is gone")

    def check_foreign(self) -> None:
        """Check that nobody has touched what is others'. Raises: `BrokenPromise`."""
        promise(placement.FOREIGN in self.placement.consumers(), "the consumer of others is gone")
        for host in self.guests.hosts.values():
            promise(hosts.FOREIGN in host.guests, f"the guest of others on {host.name} is gone")

    def check_known(self, rows: dict[str, Instance]) -> None:
        """Check what a world knows beside the cells' rows. Raises: `BrokenPromise`."""

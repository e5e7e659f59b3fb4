"""Conductors with real databases around them and no agents: a test says what becomes of each build."""

import asyncio
import atexit
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from roost.cli.verification import verify_database
from roost.conductor.aggregates.host_aggregates import HostAggregates
from roost.conductor.backoff import Backoff
from roost.conductor.cell_conductor import KIND, CellConductor
from roost.conductor.super_conductor import SuperConductor
from roost.conductor.words.words import Words
from roost.ledger import SCHEMA as LEDGER
from roost.ledger import Ledger
from roost.model.instance import ASSIGNED, BuildRequest, BuildResult, Instance
from roost.model.inventory import Inventory
from roost.model.node import KEEPS_DISKS, KEEPS_SHELVED, YES, NodeReport
from roost.model.record import Attempt, Run, RunReasons
from roost.model.spec import Flavor, RequestSpec, ServerGroup
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider
from roost.placement.service import PlacementService
from roost.records import RecordQueue
from roost.scheduler import Scheduler
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes.feed import NodeFeed
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.host_pools import HostPools
from roost.state.api_database.aggregates.store import AggregateStore
from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.request_reads import Requests
from roost.state.api_database.server_groups import ServerGroups
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import SCHEMA as CELL
from roost.state.leases import LeaseTimes, vacate_all
from roost.storage import Database
from support.driven_cell import DrivenCell
from support.waiting import patience
from support.works import is_of

NOW = 1000.0
CELLS = (CELL0, "cell1", "cell2")
HOSTS = {"a": "cell1", "b": "cell1", "c": "cell1", "d": "cell2", "e": "cell2"}
VCPUS = 4
BACKOFF = Backoff(first_seconds=0.01, longest_seconds=0.02)


class Memory:
    """Records that are only remembered."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []

    def put(
        self, runs: Sequence[Run], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None:
        self.attempts += attempts


class Conductors:
    """Hosts a, b, c in cell1 and d, e in cell2, of `VCPUS` each; the conductors of all of it."""

    def __init__(self, ledger: Ledger, cells: dict[str, DrivenCell], queue: RecordQueue | None) -> None:
        self.ledger = ledger
        self.cells = cells
        self.placement = PlacementService(ledger)
        self.passed = 0.0
        self.requests = Requests(ledger.database)
        self.words = Words(ledger.database, cells, self.placement, lambda: NOW)
        self.aggregates = HostAggregates(
            AggregateStore(ledger.database), cells.values(), self.placement, self.words
        )
        self.groups = ServerGroups(ledger.database)
        self.records = Memory()
        sink = self.records if queue is None else queue
        self.table = table = NodeTable()
        self.feed = NodeFeed(cells.values(), table, source=self.words.store)
        gateway = LocalGateway(ledger, HostPools(table))
        self.scheduler = Scheduler(gateway, sink, clock=lambda: NOW, words=self.feed.words)
        self.super = SuperConductor(
            ledger.database,
            self.scheduler,
            self.placement,
            cells,
            backoff=BACKOFF,
            words=self.words,
            # Nothing renews it in tests, which take longer than its usual seconds on a busy machine.
            times=LeaseTimes(lease=600.0),
            clock=lambda: NOW,
        )
        self._sink = sink
        self.of_cell = {name: self.conductor_of(name) for name in cells}

    def conductor_of(self, cell: str, name: str = "first") -> CellConductor:
        """A conductor of a cell. Two of them need different names."""
        return CellConductor(
            self.cells[cell],
            self.placement,
            self.scheduler,
            self._sink,
            name=name,
            poll_seconds=0.01,
            backoff=BACKOFF,
            clock=lambda: NOW,
            monotonic=self.monotonic,
        )

    def monotonic(self) -> float:
        """The clock of the cell conductors' pauses: it stands until a test moves ``passed``."""
        return self.passed

    async def set_up(self) -> None:
        for cell in self.cells.values():
            # The conductors of an earlier life are dead, and nobody is to wait until that is seen.
            await cell.write(vacate_all(KIND))
        await self.requests.map_cells({name: str(cell.database.url) for name, cell in self.cells.items()})
        for host, cell in HOSTS.items():
            if await self.placement.provider(f"node-{host}") is None:
                await self.ledger.execute(CreateProvider(f"node-{host}", host, None))
                await self.ledger.execute(SetInventories(f"node-{host}", {"VCPU": Inventory(VCPUS)}, None))
            report = NodeReport(
                host=host, node=f"node-{host}", cell=cell, stats={KEEPS_DISKS: YES, KEEPS_SHELVED: YES}
            )
            await self.cells[cell].heartbeat([report])
        await self.feed.refresh()
        await self.super.begin(alone=True)

    async def run(self, request: BuildRequest) -> None:
        """Have a request carried to its cells."""
        await self.super.accept(request)
        await self.arrive()

    async def arrive(self, seconds: float = 30.0) -> None:
        """Wait until every request is in its cells, but not for ever."""
        async with asyncio.timeout(patience(seconds)):
            await self.super.idle()

    async def instances(self) -> dict[str, Instance]:
        """All instances, which must each be in one cell."""
        found: dict[str, Instance] = {}
        for cell in self.cells.values():
            for instance in await cell.every():
                assert instance.uuid not in found, f"{instance.uuid} is in two cells"
                found[instance.uuid] = instance
        return found

    async def cell_of(self, uuid: str) -> DrivenCell:
        [cell] = [cell for cell in self.cells.values() if await cell.find([uuid])]
        return cell

    async def build(self, failing: Sequence[str] = (), reason: str = "no IP") -> None:
        """What is assigned is built, or fails on the hosts that are named."""
        for cell in self.cells.values():
            results = []
            for each in await cell.in_state(ASSIGNED):
                failure = reason if each.host in failing else None
                results.append(BuildResult(each.uuid, each.host or "", each.attempt, failure))
            await cell.report(results)

    async def step(self) -> None:
        """Each conductor does what there is to be done."""
        for conductor in self.of_cell.values():
            await conductor.step()
        await self.super.step()

    async def settle(self, failing: Sequence[str] = ()) -> None:
        """Build and retry until nobody has work to do."""
        await self.arrive()
        for _ in range(10):
            await self.build(failing)
            for cell in self.cells.values():
                await cell.destroyed(await cell.in_state("deleting"))
            await self.step()
        assert not [await cell.unsettled() for cell in self.cells.values() if await cell.unsettled()]

    async def claims(self) -> dict[str, dict[str, dict[str, int]]]:
        """What each instance holds; those that hold nothing are left out."""
        held = {uuid: await self.placement.allocations_of(uuid) for uuid in await self.instances()}
        return {uuid: each.allocations for uuid, each in held.items() if each is not None}

    async def used(self) -> int:
        """VCPUs that are claimed on all hosts, by whomever."""
        stock = (await self.ledger.current()).inventory_columns("VCPU")
        return int(stock.used[: stock.n].sum())

    async def check(self) -> None:
        """Claims, cells and mappings agree."""
        findings, unread, _ = await verify_database(str(self.ledger.database.url))
        assert not [*findings, *unread]


def intercept(
    cell: DrivenCell, kind: Callable[..., Any], instead: Callable[[Any, Any], Awaitable[Any]]
) -> None:
    """Have ``instead(work, write)`` called for the works of a transaction or type that are written to a cell.

    ``write`` writes the work.
    """
    write = cell.write

    async def perhaps(work: Any) -> Any:
        return await (instead(work, write) if is_of(work, kind) else write(work))

    cell.write = perhaps  # type: ignore[method-assign]


@cache
def _empty() -> Path:
    """A directory with empty databases, made once: making them takes longer than most tests."""
    directory = Path(mkdtemp())
    atexit.register(shutil.rmtree, directory)
    for name in ("api", *CELLS):
        database = Database(f"sqlite:///{directory / name}.db")
        for schema in (LEDGER, CONDUCTOR) if name == "api" else (CELL,):
            schema.prepare(database)
        asyncio.run(database.close())
    return directory


@asynccontextmanager
async def conducting(directory: Path, queue: RecordQueue | None = None) -> AsyncIterator[Conductors]:
    """Conductors on the databases in a directory; the same as before if they are there already.

    Records go to ``queue``, by default to a `Memory`.
    """
    if not (directory / "api.db").exists():
        # In a thread of its own, which may have an event loop.
        shutil.copytree(await asyncio.to_thread(_empty), directory, dirs_exist_ok=True)
    databases = {name: Database(f"sqlite:///{directory / name}.db") for name in ("api", *CELLS)}
    ledger = await Ledger.open(databases["api"], lambda: NOW)
    cells = {name: DrivenCell(name, databases[name], lambda: NOW) for name in CELLS}
    conductors = Conductors(ledger, cells, queue)
    try:
        await conductors.set_up()
        yield conductors
    finally:
        with suppress(Dead):
            await conductors.super.close()
        await ledger.close()
        for database in databases.values():
            await database.close()


def request(
    count: int = 1, min_count: int | None = None, vcpus: int = 1, policy: str | None = None, **spec: Any
) -> BuildRequest:
    """A request for instances i0, i1, ..."""
    return BuildRequest(
        request_id="req",
        spec=RequestSpec(
            project_id="project",
            user_id="user",
            flavor=Flavor("small", vcpus, 0),
            group=None if policy is None else ServerGroup("group", policy),
            **spec,
        ),
        instances=tuple(f"i{number}" for number in range(count)),
        min_count=count if min_count is None else min_count,
    )


class Dead(Exception):
    """The process was killed: whatever it asks of a database from now on comes to nothing."""


class Death:
    """Kills the process at one of its writes: before the ``at``-th is durable, or right after it.

    Kill and revive around what one life of the process does.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._left = 0
        self._after = False
        self.dead = False
        read, write = Database.read, Database.write

        async def perhaps_read(database: Database, work: Any, **how: bool) -> Any:
            if self.dead:
                raise Dead
            return await read(database, work, **how)

        async def perhaps_write(database: Database, work: Any) -> Any:
            if self.dead:
                raise Dead
            self._left -= 1
            if self._left == 0:
                if self._after:
                    await write(database, work)
                self.dead = True
                raise Dead
            return await write(database, work)

        monkeypatch.setattr(Database, "read", perhaps_read)
        monkeypatch.setattr(Database, "write", perhaps_write)

    def comes(self, at: int, after: bool) -> None:
        self._left, self._after = at, after

    def revive(self) -> None:
        self._left, self.dead = 0, False

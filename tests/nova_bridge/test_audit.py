"""Claims that nobody answered for are found, and freed by option; all others are left alone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from roost.model.inventory import Inventory
from roost.model.node import NodeReport
from roost.model.record import Run
from roost.model.spec import Destination, Selection
from roost.nova.audit.rounds import (
    NOT_ALLOWED,
    UNCONFIRMED,
    NovaAudit,
    UnansweredRules,
    bridge_audit_tenure,
)
from roost.nova.audit.suspects import LatestRows
from roost.nova.audit.unanswered import BESIDE, BURIED, FORGOTTEN, SHELVED
from roost.nova.database.cells import NovaCells
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.service import PlacementService
from roost.process.asyncio_context import AsyncioContext
from roost.records import RecordQueue, Retention, RunWithAttempts, Search
from roost.records.sql import SqlRecords
from roost.scheduler.nodes.table import NodeTable
from roost.state.api_database.audit import AuditFinding, read_findings, read_repairs
from roost.state.api_database.tables import SCHEMA
from roost.state.leases import renew
from roost.storage import Database, DatabaseUnavailable
from support.ledgers import opened
from support.nova_clouds import EPOCH, NovaCloud, cell_uuid, node_uuid
from support.nova_traces import action, buried, instance_uuid, mapped, migration, placed, requested, withdrawn
from support.upgrading import upgrade_empty

TIMEOUT = 1800.0
SHARED = node_uuid("shared disk")


class Audited:
    """A cloud with hosts a, b and c, a placement, and an audit that looks at both."""

    def __init__(self, cloud: NovaCloud, folder: Path, placement: PlacementService, frees: bool) -> None:
        self.cloud = cloud
        self.placement = placement
        self.now = 100_000.0
        self.api = Database(cloud.urls["api"], read_only=True, deferred=True)
        self.cells = NovaCells(self.api, None)
        self.own = Database(f"sqlite:///{folder / 'bridge.db'}")
        upgrade_empty(SCHEMA, self.own)
        self.records = RecordQueue(SqlRecords(Database(f"sqlite:///{folder / 'records.db'}"), Retention()))
        self.context = AsyncioContext(lambda _: self.own, clock=lambda: self.now, monotonic=lambda: self.now)
        self.tenure = bridge_audit_tenure("here")
        self.frees = frees
        self.table = NodeTable()
        self.audit = self.restarted()

    def restarted(self) -> NovaAudit:
        rules = UnansweredRules(every=300.0, frees=self.frees, timeout=TIMEOUT)
        return NovaAudit(
            self.context,
            self.tenure,
            self.cells,
            self.placement,
            self.table,
            self.records.backend,
            rules,
            lambda: self.now,
        )

    async def round(self, after: float = 300.0) -> None:
        self.now += after
        await self.cells.refresh()
        await renew(self.context, "api", self.tenure)
        await self.audit.round()

    async def findings(self) -> list[AuditFinding]:
        return [each for _, each in await self.own.read(read_findings(0, 100))]

    async def kinds(self) -> dict[str, str]:
        return {each.subject: each.kind for each in await self.findings()}

    async def claim(self, name: str, *hosts: str, generation: int | None = None, **more: int) -> str:
        """Claim 2 VCPU of each host, and what else is said of the shared disk."""
        found = instance_uuid(name)
        allocations = {node_uuid(host): {"VCPU": 2} for host in hosts}
        if more:
            allocations[SHARED] = more
        write = ConsumerWrite(
            consumer=found,
            allocations=allocations,
            project_id="p",
            user_id="u",
            consumer_type="INSTANCE",
            generation=generation,
        )
        await self.placement.write_allocations((write,))
        return found

    async def holds(self, name: str) -> dict[str, Any]:
        held = await self.placement.allocations_of(instance_uuid(name))
        return {} if held is None else held.allocations

    async def recorded(self, name: str, host: str, at: float, **more: int) -> None:
        """Record a run that claimed 2 VCPU of a host, and what else is said of the shared disk."""
        allocations = {node_uuid(host): {"VCPU": 2}} | ({SHARED: more} if more else {})
        node, cell = node_uuid(host), cell_uuid("cell1")
        selection = Selection(host, node, cell, allocations, {}, 1.0, ordinal=1, generation=1)
        found = instance_uuid(name)
        run = Run(
            id=f"run-{name}",
            request_id="req-1",
            project_id="p",
            user_id="u",
            instances=(found,),
            spec={},
            started_at=at,
            finished_at=at,
            version=None,
            destinations=(Destination(f"run-{name}", found, selection),),
        )
        self.records.put([run], [])
        assert await self.records.flush(10.0)


@asynccontextmanager
async def audited(folder: Path, frees: bool = True) -> AsyncIterator[Audited]:
    cloud = NovaCloud(folder, "cell0", "cell1", "cell2")
    async with opened(folder / "placement.db") as [ledger]:
        placement = PlacementService(ledger)
        made = Audited(cloud, folder, placement, frees)
        for provider in ("a", "b", "c", "shared disk"):
            await placement.ensure_provider(node_uuid(provider), provider)
            inventories = {"VCPU": Inventory(16), "DISK_GB": Inventory(100)}
            await placement.set_inventories(node_uuid(provider), inventories)
        for host in "abc":
            cloud.host("cell1", host)
        await made.cells.refresh()
        _report(made.table)
        try:
            yield made
        finally:
            await made.records.close()
            for each in (made.cells, made.own, made.api):
                await each.close()
            cloud.close()


def _report(table: NodeTable) -> None:
    table.update(
        [NodeReport(host=h, node=node_uuid(h), cell=cell_uuid("cell1"), last_seen=0.0) for h in "abc"]
    )


def on(folder: Path, work: Callable[[Audited], Awaitable[None]], frees: bool = True) -> None:
    async def run() -> None:
        async with audited(folder, frees) as now:
            await work(now)

    asyncio.run(run())


async def killed_boot(now: Audited, name: str = "one") -> None:
    """A scheduler has claimed and died before its answer, and the conductor has given up."""
    requested(now.cloud, name)
    await now.claim(name, "a")
    buried(now.cloud, name)


def test_claim_of_a_boot_that_was_given_up_is_freed_after_two_rounds(tmp_path: Path) -> None:
    async def work(now: Audited) -> None:
        await killed_boot(now)
        await now.round()
        assert [(each.kind, each.waits_for) for each in await now.findings()] == [(BURIED, UNCONFIRMED)]
        assert await now.holds("one")
        await now.round()
        assert await now.holds("one") == {}
        assert await now.findings() == [] and now.audit.state.freed == 1
        [repair] = await now.own.read(read_repairs(None, 10))
        assert (repair.finding.subject, repair.result) == (instance_uuid("one"), "done")

    on(tmp_path, work)


def test_without_the_option_the_claim_is_reported_and_stays(tmp_path: Path) -> None:
    async def work(now: Audited) -> None:
        await killed_boot(now)
        for _ in range(3):
            await now.round()
        assert [(each.kind, each.waits_for) for each in await now.findings()] == [(BURIED, NOT_ALLOWED)]
        assert await now.holds("one")

    on(tmp_path, work, frees=False)


def test_a_process_that_starts_between_two_rounds_goes_on_with_the_findings(tmp_path: Path) -> None:
    async def work(now: Audited) -> None:
        await killed_boot(now)
        await now.round()
        now.audit = now.restarted()
        await now.round()
        assert await now.holds("one") == {}

    on(tmp_path, work)


def test_nothing_is_done_while_a_cell_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(now: Audited) -> None:
        await killed_boot(now)
        await now.round()

        async def lost(*_: object, **__: object) -> object:
            raise DatabaseUnavailable("gone")

        database = now.cells.cells[cell_uuid("cell2")].database
        read = database.read
        monkeypatch.setattr(database, "read", lost)
        await now.round()
        await now.round()
        assert await now.holds("one") and len(await now.findings()) == 1
        assert now.audit.state.unread == {"cell2": "gone"}
        monkeypatch.setattr(database, "read", read)
        await now.round()
        assert await now.holds("one") == {}

    on(tmp_path, work)


def test_cell_whose_url_cannot_be_used_stops_the_audit(tmp_path: Path) -> None:
    async def work(now: Audited) -> None:
        await killed_boot(now)
        now.cloud.map_cell("cell9", database_connection="mysql+pymysql://{username}@nowhere/nova")
        await now.round()
        await now.round()
        assert await now.holds("one") and await now.findings() == []
        assert list(now.audit.state.unread) == [cell_uuid("cell9")]

    on(tmp_path, work)


def test_claims_that_nova_explains_are_no_findings(tmp_path: Path) -> None:
    async def work(now: Audited) -> None:
        for name in ("waiting", "built", "early", "disabled"):
            requested(now.cloud, name)
            await now.claim(name, "a")
            await now.recorded(name, "a", at=0.0)
        placed(now.cloud, "built", "cell1", "a")
        # The conductor writes the row before the mapping, and it is buried nowhere.
        now.cloud.instance("cell1", "early", "a")
        mapped(now.cloud, "early", "cell0")
        now.cloud.map_cell("cell8", database_connection="sqlite:///nothing", disabled=True)
        mapped(now.cloud, "disabled", "cell8")
        for _ in range(3):
            await now.round()
        assert await now.findings() == []

    on(tmp_path, work)


def test_changed_generation_begins_anew_and_a_change_during_the_round_is_no_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(now: Audited) -> None:
        await killed_boot(now)
        await now.round()
        await now.claim("one", "b", generation=1)
        await now.round()
        assert [each.waits_for for each in await now.findings()] == [UNCONFIRMED]
        write = now.placement.write_allocations

        async def late(writes: Any) -> None:
            monkeypatch.undo()
            await now.claim("one", "c", generation=2)
            await write(writes)

        monkeypatch.setattr(now.placement, "write_allocations", late)
        await now.round()
        assert await now.holds("one") == {node_uuid("c"): {"VCPU": 2}}
        [left] = await now.findings()
        assert left.waits_for is not None and "refused" in left.waits_for

    on(tmp_path, work)


def test_instance_without_any_trace_is_found_by_the_record_of_its_run(tmp_path: Path) -> None:
    async def work(now: Audited) -> None:
        for name in ("gone", "other", "young", "foreign"):
            await now.claim(name, "a")
        await now.recorded("gone", "a", at=now.now - TIMEOUT)
        await now.recorded("other", "b", at=now.now - TIMEOUT)
        await now.recorded("young", "a", at=now.now)
        await now.round(1.0)
        assert await now.kinds() == {instance_uuid("gone"): FORGOTTEN}
        await now.round()
        assert [bool(await now.holds(name)) for name in ("gone", "other", "young", "foreign")] == [
            False,
            True,
            True,
            True,
        ]
        await now.round(TIMEOUT)
        assert await now.kinds() == {instance_uuid("young"): FORGOTTEN}

    on(tmp_path, work)


def test_instance_whose_request_is_deleted_long_after_its_run_was_read_is_found(tmp_path: Path) -> None:
    async def work(now: Audited) -> None:
        requested(now.cloud, "gone")
        await now.claim("gone", "a")
        await now.recorded("gone", "a", at=now.now - TIMEOUT)
        for _ in range(4):
            await now.round(TIMEOUT)
        assert await now.findings() == []
        withdrawn(now.cloud, "gone")
        await now.round()
        assert await now.kinds() == {instance_uuid("gone"): FORGOTTEN}
        await now.round()
        assert await now.holds("gone") == {}

    on(tmp_path, work)


async def killed_evacuation(now: Audited, status: str = "accepted", **disk: int) -> None:
    """A scheduler has claimed host b beside host a for an evacuation, and died before its answer."""
    requested(now.cloud, "moved")
    placed(now.cloud, "moved", "cell1", "a", task_state="rebuilding")
    await now.claim("moved", "a", "b", **disk)
    migration(now.cloud, "cell1", "moved", "a", status)
    action(now.cloud, "cell1", "moved", "evacuate", ("rebuild_server", "conductor", "Error"))


@pytest.mark.parametrize("status", ["accepted", "error"])
def test_of_an_evacuation_only_the_part_of_the_new_host_is_freed(tmp_path: Path, status: str) -> None:
    async def work(now: Audited) -> None:
        await killed_evacuation(now, status)
        await now.round()
        assert await now.kinds() == {instance_uuid("moved"): BESIDE}
        await now.round()
        assert await now.holds("moved") == {node_uuid("a"): {"VCPU": 2}}
        for _ in range(2):
            await now.round()
        assert await now.findings() == []
        assert await now.holds("moved") == {node_uuid("a"): {"VCPU": 2}}

    on(tmp_path, work)


@pytest.mark.parametrize(
    ("status", "values", "events"),
    [
        ("accepted", {}, ()),
        ("accepted", {}, (("rebuild_server", "conductor", None),)),
        ("accepted", {}, (("rebuild_server", "conductor", "Success"),)),
        ("pre-migrating", {"dest_node": "b"}, (("rebuild_server", "conductor", "Success"),)),
        ("accepted", {"dest_node": "b"}, (("rebuild_server", "conductor", "Error"),)),
        ("done", {"dest_node": "b"}, (("rebuild_server", "conductor", "Success"),)),
        ("error", {"migration_type": "resize"}, ()),
    ],
)
def test_an_evacuation_that_goes_on_or_was_taken_explains_its_claim(
    tmp_path: Path, status: str, values: dict[str, str], events: tuple[tuple[str, str, str | None], ...]
) -> None:
    async def work(now: Audited) -> None:
        placed(now.cloud, "moved", "cell1", "a")
        await now.claim("moved", "a", "b")
        migration(now.cloud, "cell1", "moved", "a", status, **values)
        if events:
            action(now.cloud, "cell1", "moved", "evacuate", *events)
        for _ in range(2):
            await now.round()
        assert await now.findings() == [] and len(await now.holds("moved")) == 2

    on(tmp_path, work)


def test_a_second_evacuation_that_goes_on_explains_what_the_first_left(tmp_path: Path) -> None:
    async def work(now: Audited) -> None:
        await killed_evacuation(now)
        await now.round()
        action(now.cloud, "cell1", "moved", "evacuate", request="req-2", at=60.0)
        await now.round()
        assert await now.findings() == [] and len(await now.holds("moved")) == 2

    on(tmp_path, work)


def test_part_of_a_shared_provider_is_known_by_the_record_alone(tmp_path: Path) -> None:
    async def work(now: Audited) -> None:
        await killed_evacuation(now, DISK_GB=20)
        for _ in range(2):
            await now.round()
        [found] = await now.findings()
        assert found.action is None and "shared provider" in (found.waits_for or "")
        await now.recorded("moved", "b", at=now.now, DISK_GB=10)
        for _ in range(2):
            await now.round()
        assert await now.holds("moved") == {node_uuid("a"): {"VCPU": 2}, SHARED: {"DISK_GB": 10}}

    on(tmp_path, work)


def test_records_are_searched_for_an_evacuation_that_was_given_up_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(now: Audited) -> None:
        backend = now.records.backend
        assert isinstance(backend, SqlRecords)
        find = backend.find
        asked: list[str] = []

        async def counted(search: Search, limit: int = 20) -> list[RunWithAttempts]:
            if search.instance is not None:
                asked.append(search.instance)
            return await find(search, limit)

        monkeypatch.setattr(backend, "find", counted)
        for name in ("one", "two"):
            placed(now.cloud, name, "cell1", "a")
            await now.claim(name, "a", "b")
            migration(now.cloud, "cell1", name, "a", "accepted")
        await killed_evacuation(now)
        await now.round()
        assert asked == [instance_uuid("moved")]

    on(tmp_path, work)


async def killed_unshelve(now: Audited) -> None:
    """A scheduler has claimed for an instance that is shelved, and died before its answer."""
    requested(now.cloud, "shelved")
    placed(now.cloud, "shelved", "cell1", None, vm_state="shelved_offloaded", launched_at=EPOCH)
    await now.claim("shelved", "a")
    action(now.cloud, "cell1", "shelved", "shelve", ("compute_shelve_instance", "a", "Success"))
    action(now.cloud, "cell1", "shelved", "unshelve", ("schedule_instances", "conductor", "Error"))


def test_claim_of_an_unshelve_that_failed_is_freed(tmp_path: Path) -> None:
    async def work(now: Audited) -> None:
        await killed_unshelve(now)
        await now.round()
        assert await now.kinds() == {instance_uuid("shelved"): SHELVED}
        await now.round()
        assert await now.holds("shelved") == {} and await now.findings() == []

    on(tmp_path, work)


@pytest.mark.parametrize("began", ["task", "action", "host"])
def test_an_unshelve_that_goes_on_explains_its_claim(tmp_path: Path, began: str) -> None:
    async def work(now: Audited) -> None:
        await killed_unshelve(now)
        await now.round()
        if began == "task":
            now.cloud.instance("cell1", "shelved", None, task_state="unshelving")
        elif began == "action":
            action(now.cloud, "cell1", "shelved", "unshelve", request="req-2")
        else:
            now.cloud.instance("cell1", "shelved", "a", vm_state="active")
        await now.round()
        assert await now.findings() == [] and await now.holds("shelved")

    on(tmp_path, work)


def test_another_process_with_the_lease_audits_alone(tmp_path: Path) -> None:
    async def work(now: Audited) -> None:
        await killed_boot(now)
        await now.round()
        now.tenure.holder = "another"
        await now.audit.round()
        await now.audit.round()
        assert await now.holds("one")

    on(tmp_path, work)


def test_rows_are_judged_for_some_time_and_then_no_more() -> None:
    rows = LatestRows(3600.0)
    rows.read([3, 2, 1])
    assert rows.after == 0
    rows.judged(0.0)
    rows.read([7])
    rows.judged(3000.0)
    assert rows.after == 0
    rows.judged(3600.0)
    assert rows.after == 3
    rows.read([])
    rows.judged(6600.0)
    assert rows.after == 7

"""Operators' words on what a cell has while its database does not answer, or answers late."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from roost.conductor.hosts.cells import CellRegistry
from roost.conductor.hosts.registry import HostRegistry
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.model.operator_word import Subject
from roost.placement.commands.providers import CreateProvider
from roost.state.api_database import open_cells
from roost.state.api_database.aggregates.errors import UnknownNodeName
from roost.state.api_database.host_mappings import CellUnavailable, NoSuchNode, map_hosts
from roost.state.api_database.node_names import claim_names
from roost.state.cell_database.disabled import enable_host, mirror_words, read_flags
from roost.storage import DatabaseUnavailable, Transaction
from support.conducting import NOW, Conductors, conducting, intercept
from support.waiting import patience


def on_silent_cell(directory: Path, monkeypatch: pytest.MonkeyPatch, use: Any) -> None:
    """Use conductors of which cell2 does not answer. It has host d, and a node rack7 of it."""

    async def away(work: object) -> None:
        raise DatabaseUnavailable("away")

    async def run() -> None:
        async with conducting(directory) as now:
            api = now.ledger.database
            await api.write(map_hosts(["d"], "cell2", NOW))
            await now.ledger.execute(CreateProvider("node-rack7", "node-rack7", None))
            await api.write(claim_names("d", "cell2", {"rack7": "node-rack7"}))
            await now.ledger.execute(CreateProvider("disk", "disk", None))
            await now.ledger.execute(CreateProvider("child", "child of d", "node-d"))
            for name in ("read", "write"):
                monkeypatch.setattr(now.cells["cell2"], name, away)
            await use(now)

    asyncio.run(run())


def hosts_of(now: Conductors) -> HostRegistry:
    return HostRegistry(now.ledger.database, now.cells, now.placement, now.super.watch, now.words)


@pytest.mark.parametrize(("node", "name"), [("node-d", "d"), ("node-rack7", "rack7")])
def test_word_on_a_node_is_taken_without_its_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str, name: str
) -> None:
    async def use(now: Conductors) -> None:
        for enabled in (False, True):
            shown = await hosts_of(now).enable_node("d", node, enabled, "disk")
            assert (shown.nodename, shown.enabled, shown.instances) == (name, None, None)
            assert (shown.word is None) == enabled
            said = await now.words.store.of_hosts(["d"])
            assert said[Subject("cell2", "d", node)].enabled == enabled

    on_silent_cell(tmp_path, monkeypatch, use)


@pytest.mark.parametrize("node", ["node-a", "disk", "child", "nothing"])
def test_word_on_what_may_be_no_node_of_the_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str
) -> None:
    async def use(now: Conductors) -> None:
        with pytest.raises(CellUnavailable, match="cell2 cannot be asked"):
            await hosts_of(now).enable_node("d", node, False)
        assert not await now.words.store.of_hosts(["d"])
        await now.ledger.database.write(map_hosts(["a"], "cell1", NOW))
        if node != "node-a":
            with pytest.raises(NoSuchNode):
                await hosts_of(now).enable_node("a", node, False)

    on_silent_cell(tmp_path, monkeypatch, use)


def test_answer_to_a_word_says_what_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(now: Conductors) -> None:
        host = await hosts_of(now).enable("d", False, "fan")
        assert (host.described, host.said and host.said.enabled) == (None, False)
        cells = CellRegistry(now.ledger.database, now.cells, now.super.watch, now.words)
        cell = await cells.enable("cell2", False, "power")
        assert (cell.counts, cell.enabled, cell.reason) == (None, False, "power")

    on_silent_cell(tmp_path, monkeypatch, use)


@pytest.mark.parametrize(
    ("named", "node"), [("node-d", "node-d"), ("rack7", "node-rack7"), ("node-rack7", "node-rack7")]
)
def test_members_join_and_leave_without_their_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, node: str
) -> None:
    async def use(now: Conductors) -> None:
        isolated = await now.aggregates.create("isolated", {"filter_tenant_id": "own"})
        made = await now.aggregates.change_members(isolated.uuid, [named, "a"], [])
        assert made.members == {node, "node-a"}
        assert await now.placement.providers_in_aggregate(isolated.uuid) == {node, "node-a"}
        left = await now.aggregates.change_members(isolated.uuid, [], [named])
        assert left.members == {"node-a"}
        for unknown in ("disk", "child", "nobody"):
            with pytest.raises((UnknownNodeName, DatabaseUnavailable)):
                await now.aggregates.change_members(isolated.uuid, [unknown], [])

    on_silent_cell(tmp_path, monkeypatch, use)


def test_zone_of_a_node_waits_for_its_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(now: Conductors) -> None:
        zone = await now.aggregates.create("zone", {AVAILABILITY_ZONE: "az1"})
        with pytest.raises(DatabaseUnavailable):
            await now.aggregates.change_members(zone.uuid, ["node-d"], [])
        assert not (await now.aggregates.store.find(zone.uuid)).members

    on_silent_cell(tmp_path, monkeypatch, use)


def test_zones_of_nodes_by_uuid_wait_for_no_other_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(work: object) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        async with conducting(tmp_path) as now, asyncio.timeout(patience()):
            monkeypatch.setattr(open_cells, "CELL_SECONDS", 10 * patience())
            monkeypatch.setattr(now.cells["cell2"], "read", never)
            zone = await now.aggregates.create("zone", {AVAILABILITY_ZONE: "az1"})
            made = await now.aggregates.change_members(zone.uuid, ["node-a"], [])
            assert (await now.aggregates.names(made.members))["node-a"].host == "a"
            await now.aggregates.change_members(zone.uuid, [], ["node-a"])

    asyncio.run(run())


@pytest.mark.parametrize("enabled", [True, False])
def test_word_that_reaches_its_cell_late_does_not_stay_over_a_newer_one(
    tmp_path: Path, enabled: bool
) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            cell, subject = now.cells["cell1"], Subject("cell1", "a")
            await now.words.say(subject, True)
            if enabled:
                await now.words.say(subject, False)
            else:
                await cell.write(enable_host("a", False, "an earlier version", NOW))
            late = [True]

            async def newer_comes_first(work: Transaction[Any], write: Any) -> Any:
                if late.pop() if late else False:
                    # Another conductor says it and brings it to the cell.
                    await now.words.say(subject, enabled)
                    await now.words.mirror.bring("cell1", (await now.words.store.by_cell())["cell1"])
                return await write(work)

            intercept(cell, mirror_words, newer_comes_first)
            await now.words.mirror.heal()
            assert not late
            assert await cell.read(read_flags("cell1")) == (frozenset() if enabled else {subject})

    asyncio.run(run())

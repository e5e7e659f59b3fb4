"""Reshapes of hosts with running instances, by a real agent, endpoint, cell and placement in one process."""

import asyncio
from pathlib import Path

import pytest
import structlog.testing

from roost.agent.drivers.simulated import SimulatedDriver
from roost.conductor.agent_endpoint.tree_reshape import settle
from roost.model.assignment import AssignedCell, Assignment
from roost.model.instance import ACTIVE, ASSIGNED
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.placement.errors import ConcurrentUpdate
from roost.state.cell_database.arrivals import find_instances
from roost.state.cell_database.hosts import describe_hosts
from roost.state.cell_database.reshapes import ReshapeMark, begin_reshape, read_reshape_marks
from support.agents import Hosts, hosts, until
from support.reshaping import FLAT, ROOT, cards, claimed, described, follows, held, put

NUMA = {"VCPU": Inventory(4), "MEMORY_MB": Inventory(512)}


async def reshaped(world: Hosts, driver: SimulatedDriver) -> None:
    """Run the agent of host a once with another driver."""
    world.a = driver
    async with world.running():
        pass


def test_the_claim_of_an_instance_that_was_unshelved_moves_and_its_row_follows(tmp_path: Path) -> None:
    """The agent knows the instance, and placement another consumer of it."""

    async def run() -> None:
        async with hosts(tmp_path) as world:
            await reshaped(world, described(FLAT))
            await put(world, "one", consumer="drawn", VCPU=2, MEMORY_MB=64)
            await reshaped(world, described({"VGPU": Inventory(8)}, numa0=NUMA, numa1=NUMA))
            assert await held(world, "drawn") == {"a-numa0": {"VCPU": 2, "MEMORY_MB": 64}}
            assert await follows(world, "one")
            assert await world.placement.allocations_of("one") is None
            assert await world.cell.read(read_reshape_marks()) == []

    asyncio.run(run())


@pytest.mark.parametrize(
    ("driver", "one", "two"),
    [
        (
            lambda: cards(4, 4),
            {"a": {"VCPU": 2, "MEMORY_MB": 64}, "a-gpu1": {"VGPU": 3}},
            {"a": {"VCPU": 2, "MEMORY_MB": 64}, "a-gpu2": {"VGPU": 3}},
        ),
        (
            lambda: described({**FLAT, "PCPU": Inventory(8)} | {"VCPU": Inventory(1)}),
            {"a": {"VCPU": 2, "MEMORY_MB": 64, "VGPU": 3}},
            {"a": {"VCPU": 2, "MEMORY_MB": 64, "VGPU": 3}},
        ),
        (
            lambda: described({"PCPU": Inventory(8), "MEMORY_MB": Inventory(1024), "VGPU": Inventory(8)}),
            {"a": {"PCPU": 2, "MEMORY_MB": 64, "VGPU": 3}},
            {"a": {"PCPU": 2, "MEMORY_MB": 64, "VGPU": 3}},
        ),
        (
            lambda: described({"VGPU": Inventory(8)}, numa0=NUMA, numa1=NUMA),
            {"a": {"VGPU": 3}, "a-numa0": {"VCPU": 2, "MEMORY_MB": 64}},
            {"a": {"VGPU": 3}, "a-numa1": {"VCPU": 2, "MEMORY_MB": 64}},
        ),
    ],
    ids=["vgpu to cards", "shared beside dedicated", "vcpu to pcpu", "numa nodes"],
)
def test_host_is_reshaped_with_its_instances(tmp_path: Path, driver, one, two) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            await reshaped(world, described(FLAT))
            await put(world, "one", VCPU=2, MEMORY_MB=64, VGPU=3)
            await put(world, "two", VCPU=2, MEMORY_MB=64, VGPU=3)
            await reshaped(world, driver())
            assert (await held(world, "one"), await held(world, "two")) == (one, two)
            assert await follows(world, "one") and await follows(world, "two")
            rows = await world.cell.read(find_instances(("one",)))
            assert {*rows["one"].selection.mappings[""]} == {provider_uuid(name) for name in one}
            assert await world.cell.read(read_reshape_marks()) == []
            before = (await world.placement.ledger.current()).version
            await reshaped(world, driver())
            assert (await world.placement.ledger.current()).version == before

    asyncio.run(run())


def test_tree_becomes_another_tree_and_flat_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            await reshaped(world, cards(8))
            await put(world, "one", VCPU=2)
            await reshaped(world, described(FLAT))
            tree = await world.placement.tree(ROOT)
            assert [each.name for each in tree] == ["a"]
            await put(world, "two", VGPU=5)
            await reshaped(world, cards(3, 3))
            # No card has five: a consumer is split where it does not fit.
            assert await held(world, "two") == {"a-gpu1": {"VGPU": 3}, "a-gpu2": {"VGPU": 2}}
            await reshaped(world, cards(8))
            assert await held(world, "two") == {"a-gpu1": {"VGPU": 5}}
            assert {each.name for each in await world.placement.tree(ROOT)} == {"a", "a-gpu1"}
            assert await follows(world, "two")

    asyncio.run(run())


def test_inventory_that_another_agent_has_made_is_moved_too(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            # As an agent of Nova leaves a host, and an operator a class of his own.
            await world.placement.ensure_provider(ROOT, "a")
            await world.placement.ensure_resource_class("CUSTOM_LICENSE")
            licences = {"CUSTOM_LICENSE": Inventory(3)}
            await world.placement.set_inventories(ROOT, {**FLAT, **licences})
            await put(world, "one", VCPU=2, VGPU=3)
            await reshaped(world, cards(4, 4))
            assert (await world.placement.inventories(ROOT)).keys() == {"VCPU", "MEMORY_MB", *licences}
            assert await held(world, "one") == {"a": {"VCPU": 2}, "a-gpu1": {"VGPU": 3}}

    asyncio.run(run())


def test_what_others_hold_is_carried_and_the_log_tells_the_change(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            await reshaped(world, described({"VGPU": Inventory(8)}))
            await put(world, "one", VGPU=2)
            await claimed(world, "volume", "VOLUME", VGPU=2)
            with structlog.testing.capture_logs() as logs:
                await reshaped(world, cards(4, 4))
            assert await held(world, "volume") == {"a-gpu2": {"VGPU": 2}}
            [told] = [each for each in logs if each["event"] == "a node is reshaped"]
            assert (told["host"], told["consumers"], told["instances"]) == ("a", 2, 1)
            assert told["before"] == "a: 8 VGPU; a-gpu1: nothing; a-gpu2: nothing"
            assert told["after"] == "a: 8 VCPU, 1024 MEMORY_MB; a-gpu1: 4 VGPU; a-gpu2: 4 VGPU"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("driver", "kind", "reason"),
    [
        (lambda: cards(1, 1), "VOLUME", "consumer x holds 3 VGPU, of which 1 fit nowhere"),
        (lambda: cards(4, 4), "INSTANCE", "instances x hold something of the node, but the cell has none"),
    ],
    ids=["does not fit", "not of the cell"],
)
def test_reshape_is_refused_with_nothing_changed(tmp_path: Path, driver, kind, reason) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            await reshaped(world, described(FLAT))
            await claimed(world, "x", kind, VGPU=3)
            world.a = driver()
            async with world.running():

                async def is_shown() -> bool:
                    shown = (await world.cell.read(describe_hosts(("a",))))["a"]
                    return reason in (shown.refused or "")

                await until(is_shown)
            assert await world.placement.inventories(ROOT) == FLAT
            assert await held(world, "x") == {"a": {"VGPU": 3}}
            # The host is as it was, and so is what its driver told before.
            await reshaped(world, described(FLAT))
            assert (await world.cell.read(describe_hosts(("a",))))["a"].refused is None
            assert await world.cell.read(read_reshape_marks()) == []

    with structlog.testing.capture_logs() as logs:
        asyncio.run(run())
    [told] = [each["error"] for each in logs if each["log_level"] == "error"]
    assert reason in told


class CutOff(Exception):
    """The endpoint is killed."""


@pytest.mark.parametrize("made", [True, False], ids=["in placement", "not in placement"])
def test_reshape_that_was_cut_off_is_settled(tmp_path: Path, made: bool) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            await reshaped(world, described(FLAT))
            await put(world, "one", VCPU=2, VGPU=3)
            placed = world.placement.reshape
            late = []

            async def killed(*arguments):
                if made:
                    await placed(*arguments)
                late.append(arguments)
                raise CutOff

            world.placement.reshape = killed  # type: ignore[method-assign]
            await reshaped(world, cards(4, 4))
            world.placement.reshape = placed  # type: ignore[method-assign]
            [mark] = await world.cell.read(read_reshape_marks())
            assert await follows(world, "one") == (not made)
            await settle(world.service._endpoint._context, "cell/cell1", mark)
            assert await follows(world, "one")
            assert await world.cell.read(read_reshape_marks()) == []
            with pytest.raises(ConcurrentUpdate):
                # A message that was under way all the time changes nothing any more.
                await placed(*late[0])
            await reshaped(world, cards(4, 4))
            assert await held(world, "one") == {"a": {"VCPU": 2}, "a-gpu1": {"VGPU": 3}}
            assert await follows(world, "one")

    asyncio.run(run())


def test_reshape_of_an_agent_that_is_gone_comes_to_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            await reshaped(world, described(FLAT))
            await put(world, "one", VGPU=3)
            placed = world.placement.reshape
            late = []

            async def is_late(*arguments):
                late.append(arguments)
                raise CutOff

            world.placement.reshape = is_late  # type: ignore[method-assign]
            await reshaped(world, cards(4, 4))
            # The operator takes the option back, and the next agent has nothing to change.
            await reshaped(world, described(FLAT))
            with pytest.raises(ConcurrentUpdate):
                await placed(*late[-1])
            assert await held(world, "one") == {"a": {"VGPU": 3}}

    asyncio.run(run())


def test_agent_settles_what_was_cut_off_before_it_reshapes(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            await reshaped(world, described(FLAT))
            await put(world, "one", VGPU=3)
            root = await world.placement.provider(ROOT)
            assert root is not None
            mark = ReshapeMark(ROOT, root.generation, 0.0)
            await world.cell.write(begin_reshape(mark, {}))
            await reshaped(world, cards(4, 4))
            assert await held(world, "one") == {"a-gpu1": {"VGPU": 3}}
            assert await world.cell.read(read_reshape_marks()) == []

    asyncio.run(run())


def test_build_that_is_under_way_ends_before_its_host_is_reshaped(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            await reshaped(world, described(FLAT))
            await put(world, "one", state=ASSIGNED, VGPU=3)
            world.a = slow = cards(4, 4)
            go, prepared, asked = asyncio.Event(), [], []

            async def prepare(instance):
                prepared.append(instance)
                await go.wait()
                await SimulatedDriver.prepare(slow, instance)

            def fill(*arguments):
                if not prepared:
                    raise RuntimeError("the build comes first")
                asked.append(arguments)
                SimulatedDriver.update_provider_tree(slow, *arguments)

            slow.prepare = prepare  # type: ignore[method-assign]
            slow.update_provider_tree = fill  # type: ignore[method-assign]
            async with world.running():
                await until(lambda: asked)
                await put(world, "two", state=ASSIGNED, VGPU=3)
                await asyncio.sleep(0.3)
                assert await world.placement.inventories(ROOT) == FLAT
                assert [each.uuid for each in prepared] == ["one"]
                go.set()
                await world.reaches(ACTIVE, "one")
                await world.reaches(ACTIVE, "two")
            two = next(each for each in prepared if each.uuid == "two")
            there = await world.placement.allocations_of("two")
            assert there is not None and two.selection.allocations == there.allocations
            assert {*await held(world, "one"), *await held(world, "two")} == {"a-gpu1", "a-gpu2"}

    asyncio.run(run())


def test_what_an_instance_has_of_the_hardware_stays_its_own(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            await reshaped(world, described(FLAT))
            assignment = Assignment(ROOT, (AssignedCell(0, 1, pinned=((0, 4), (1, 5)), memory_mb=64),))
            await put(world, "one", assignment=assignment, VCPU=2, MEMORY_MB=64)
            await put(world, "two", VCPU=2, MEMORY_MB=64)
            await reshaped(world, described({"VGPU": Inventory(8)}, numa0=NUMA, numa1=NUMA))
            cells = [await held(world, uuid) for uuid in ("one", "two")]
            assert [[*each] for each in cells] == [["a-numa1"], ["a-numa0"]]
            there = await world.placement.allocations_of("one")
            row = (await world.cell.read(find_instances(("one",))))["one"]
            assert there is not None and there.consumer.assignment == assignment
            assert row.selection is not None and row.selection.assignment == assignment
            assert await follows(world, "one")

    asyncio.run(run())


def test_reshape_at_run_time_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            world.a = flat = described(FLAT)
            with structlog.testing.capture_logs() as logs:
                async with world.running():
                    await put(world, "one", VGPU=3)
                    flat._host = cards(4, 4)._host
                    await until(lambda: any("another shape" in str(each.get("error")) for each in logs))
            assert await world.placement.inventories(ROOT) == FLAT
            assert await held(world, "one") == {"a": {"VGPU": 3}}

    asyncio.run(run())

"""The agent of a host against a real endpoint: an attempt is built once, no guest ends without an order."""

import asyncio
from collections.abc import Collection

import pytest

from roost.agent.errors import BuildFailed
from roost.agent.workload import OVERTIME
from roost.model.instance import (
    ABANDONED,
    ACTIVE,
    ASSIGNED,
    DELETING,
    DESTROYED,
    FAILED,
    LOST,
    DestroyOrder,
    Instance,
)
from roost.model.names import provider_uuid
from roost.state.cell_database.host_work import give_orders, work_of_hosts
from support.agents import Hosts, hosts, until
from support.cells import NOW, failed, instance, selection


def test_assigned_instance_is_prepared_confirmed_started_and_reported(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            await world.cell.add([instance("i"), instance("j", "b"), instance("k", "not ours")])
            for uuid in "ij":
                await world.reaches(ACTIVE, uuid)
            assert await world.state("k") == ASSIGNED
            assert (world.a.there, world.b.there) == ({"i": 1}, {"j": 1})

    asyncio.run(run())


def test_hosts_report_their_nodes_and_providers(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            [a, b] = await world.cell.nodes()
            assert (a.host, a.node, a.cell) == ("a", provider_uuid("a"), "cell1")
            assert (b.host, a.metrics) == ("b", {"heat": 40.0})
            assert "VCPU" in await world.placement.inventories(provider_uuid("b"))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (BuildFailed("No more IP addresses"), FAILED, "No more IP addresses"),
        (ZeroDivisionError("division by zero"), FAILED, "ZeroDivisionError: division by zero"),
        (BuildFailed("no \udc80 image\0"), FAILED, "no \ufffd image\ufffd"),
        (BuildFailed("no such image", "ImageNotFound", retryable=False), ABANDONED, "no such image"),
    ],
    ids=["failure", "defect of the driver", "odd text", "no other host can cure it"],
)
def test_whatever_goes_wrong_is_the_reason(tmp_path, error, state, reason) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            world.a.failure = error
            await world.cell.add([instance()])
            await world.reaches(state)
            [fault] = await world.cell.faults_of("i")
            assert (fault.host, fault.reason) == ("a", reason)
            await until(lambda: failed_builds(world, 1))
            assert world.a.there == {}

    asyncio.run(run())


async def failed_builds(world: Hosts, number: int) -> bool:
    [a, _] = await world.cell.nodes()
    return a.failed_builds == number


def test_attempt_that_takes_too_long_fails_and_is_ended(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path, build=0.3) as world, world.running():
            world.a.go.clear()
            await world.cell.add([instance()])
            await world.reaches(FAILED)
            [fault] = await world.cell.faults_of("i")
            assert fault.reason == "the build took longer than 0.3 seconds"
            assert world.a.calls[-1] == "destroy i"
            assert OVERTIME == "TimedOut"

    asyncio.run(run())


def test_next_attempt_on_the_same_host_is_built_again(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            world.a.failure = BuildFailed("no disk")
            await world.cell.add([instance()])
            await world.reaches(FAILED)
            world.a.failure = None
            await world.cell.reassign("i", 1, selection("a"), ())
            await world.reaches(ACTIVE)
            assert world.a.there == {"i": 2}
            assert [call for call in world.a.calls if call.startswith("b")] == [
                "build i 1",
                "build i 2",
                "built i",
            ]

    asyncio.run(run())


def test_build_that_hangs_does_not_block_its_deletion(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            world.a.go.clear()
            await world.cell.add([instance()])
            await until(lambda: world.a.calls)
            await world.cell.delete(["i"])
            await world.reaches(DESTROYED)
            assert world.a.there == {}
            assert "built i" not in world.a.calls

    asyncio.run(run())


def test_driver_that_cannot_take_up_its_guests_at_once_keeps_no_other_host(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            recover, failures = world.a.recover, [RuntimeError("not yet"), RuntimeError("not yet")]

            async def recovers(instances: Collection[Instance]) -> None:
                if failures:
                    raise failures.pop()
                await recover(instances)

            world.a.recover = recovers
            async with world.running():
                await world.cell.add([instance("i"), instance("j", host="b", node="node-b")])
                await world.reaches(ACTIVE, "j")
                await world.reaches(ACTIVE, "i")
            assert failures == []

    asyncio.run(run())


def test_destruction_that_fails_is_tried_again(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            await world.cell.add([instance()])
            await world.reaches(ACTIVE)
            world.a.destroy_failures = 1
            await world.cell.delete(["i"])
            await world.reaches(DESTROYED)
            assert world.a.calls[-2:] == ["destroy i", "destroy i"]

    asyncio.run(run())


def test_order_to_destroy_an_earlier_attempt_leaves_a_later_guest_alone(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            await world.cell.add([instance(attempt=3)])
            await world.reaches(ACTIVE)
            order = DestroyOrder("i", 2, "a")
            await world.cell.database.write(give_orders([order], NOW))

            async def acknowledged() -> bool:
                return not (await world.cell.read(work_of_hosts(("a",)))).orders

            await until(acknowledged)
            assert world.a.there == {"i": 3}
            assert await world.state() == ACTIVE

    asyncio.run(run())


def test_guests_that_the_cell_does_not_know_are_left_alone(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            world.a.there["foreign"] = 1
            await world.cell.add([instance("i", state=ACTIVE), instance("j", state=DELETING)])
            async with world.running():
                await world.reaches(DESTROYED, "j")
                assert world.a.there == {"foreign": 1, "i": 1}
                assert "destroy foreign" not in world.a.calls

    asyncio.run(run())


def test_guest_that_vanished_is_lost_until_it_is_there_again(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            await world.cell.add([instance()])
            await world.reaches(ACTIVE)
            del world.a.there["i"]
            await world.reaches(LOST)
            world.a.there["i"] = 1
            await world.reaches(ACTIVE)

    asyncio.run(run())


def test_attempt_that_is_over_is_not_started(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            world.a.go.clear()
            await world.cell.add([instance(alternates="b")])
            await until(lambda: "build i 1" in world.a.calls)
            await world.cell.report([failed(reason="an operator ended it")])
            await world.cell.reassign("i", 1, selection("b"), ())
            await world.reaches(ACTIVE)
            world.a.go.set()
            await until(lambda: world.a.calls[-1] == "destroy i")
            assert (world.a.there, world.b.there) == ({}, {"i": 2})
            assert await world.state() == ACTIVE

    asyncio.run(run())


def test_host_that_placement_refuses_keeps_no_other_from_starting(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            await world.placement.ensure_provider("somebody-else", "a")
            async with world.running() as hosting:
                assert hosting.agents["b"].agent.providers.registered
                assert not hosting.agents["a"].agent.providers.registered
                await world.placement.delete_provider("somebody-else")
                await until(lambda: hosting.agents["a"].agent.providers.registered)

    asyncio.run(run())

"""Simulated hosts fail as their script says, in the same places for the same seed."""

import asyncio
from pathlib import Path

import pytest

from roost.agent.drivers.simulated import (
    FailureRule,
    GuestFiles,
    Script,
    SimulatedDriver,
    SimulatedHost,
    SimulatedProvider,
)
from roost.agent.errors import BuildFailed, CannotStopGuests, NoSuchGuest
from roost.agent.provider_tree import ProviderTree
from roost.model.instance import ACTIVE, POWERING_OFF, POWERING_ON, STOPPED, Instance
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from support.cells import instance

HOST = SimulatedHost("a", {"VCPU": Inventory(4)})


async def build(driver: SimulatedDriver, wanted: Instance) -> None:
    await driver.prepare(wanted)
    await driver.start(wanted)


def failures(script: Script, host: str = "a", attempt: int = 1) -> list[str | None]:
    return [script.failure(host, f"instance-{number}", attempt) for number in range(2000)]


@pytest.mark.parametrize("rate", [0.0, 0.2, 1.0])
def test_share_of_failures_is_the_rate(rate) -> None:
    failed = sum(reason is not None for reason in failures(Script(failures=(FailureRule(rate),), seed=1)))
    assert failed == pytest.approx(2000 * rate, abs=60 if 0 < rate < 1 else 0)


def test_failures_depend_on_seed_host_and_attempt_alone() -> None:
    script = Script(failures=(FailureRule(0.5),), seed=1)
    assert failures(script) == failures(Script(failures=(FailureRule(0.5),), seed=1))
    assert failures(script) != failures(Script(failures=(FailureRule(0.5),), seed=2))
    assert failures(script) != failures(script, host="b")
    assert failures(script) != failures(script, attempt=2)


def test_rule_for_some_hosts_leaves_the_others_alone() -> None:
    script = Script(failures=(FailureRule(1.0, "no disk", frozenset("b")), FailureRule(0.5, "no IP")))
    assert set(failures(script, "b")) == {"no disk"}
    assert set(failures(script, "a")) == {"no IP", None}


def test_failed_build_leaves_nothing_on_the_host() -> None:
    async def run() -> None:
        driver = SimulatedDriver(HOST, Script(failures=(FailureRule(1.0, "no disk"),)))
        with pytest.raises(BuildFailed, match="no disk"):
            await build(driver, instance())
        assert not driver.guests()

    asyncio.run(run())


def test_guests_come_with_builds_and_recovery_and_go_with_destruction() -> None:
    async def run() -> None:
        driver = SimulatedDriver(HOST, Script())
        await build(driver, instance("i"))
        await build(driver, instance("i"))
        await driver.recover([instance("j")])
        assert driver.guests() == {"i": 1, "j": 1}
        await driver.destroy("i")
        await driver.destroy("i")
        assert driver.guests() == {"j": 1}

    asyncio.run(run())


def test_a_stopped_guest_stays_stopped_until_it_is_started_again(tmp_path: Path) -> None:
    def driver() -> SimulatedDriver:
        return SimulatedDriver(HOST, Script(), GuestFiles(tmp_path))

    async def run() -> None:
        first = driver()
        await build(first, instance("i", attempt=2))
        await first.stop("i")
        await first.stop("i")
        assert not first.guests()
        second = driver()
        await second.recover([instance("i", attempt=2)])
        assert not second.guests()
        with pytest.raises(NoSuchGuest):
            await second.start_again(instance("i", attempt=1))
        await second.start_again(instance("i", attempt=2))
        await second.start_again(instance("i", attempt=2))
        assert second.guests() == driver().guests() == {"i": 2}
        await second.stop("i")
        await second.destroy("i")
        with pytest.raises(NoSuchGuest):
            await second.stop("i")
        with pytest.raises(NoSuchGuest):
            await driver().start_again(instance("i", attempt=2))

    asyncio.run(run())


def test_a_prepared_guest_that_is_stopped_stays_and_one_of_a_stopped_instance_is_taken_up_so(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        driver = SimulatedDriver(HOST, Script(), GuestFiles(tmp_path))
        await driver.prepare(instance("i", attempt=2))
        await driver.stop("i")
        later = SimulatedDriver(HOST, Script(), GuestFiles(tmp_path))
        assert not driver.guests() and not later.guests()
        await later.start_again(instance("i", attempt=2))
        assert later.guests() == {"i": 2}
        # Guests that live in memory.
        in_memory = SimulatedDriver(HOST, Script())
        there = [instance(state, state=state) for state in (ACTIVE, POWERING_OFF, STOPPED, POWERING_ON)]
        await in_memory.recover(there)
        assert in_memory.guests() == {ACTIVE: 1, POWERING_OFF: 1}
        await in_memory.start_again(there[2])
        assert in_memory.guests() == {ACTIVE: 1, POWERING_OFF: 1, STOPPED: 1}

    asyncio.run(run())


def test_a_later_attempt_replaces_a_stopped_guest(tmp_path: Path) -> None:
    async def run() -> None:
        driver = SimulatedDriver(HOST, Script(), GuestFiles(tmp_path))
        await build(driver, instance("i"))
        await driver.stop("i")
        await driver.prepare(instance("i", attempt=3))
        with pytest.raises(NoSuchGuest):
            await SimulatedDriver(HOST, Script(), GuestFiles(tmp_path)).stop("i")
        await driver.start(instance("i", attempt=3))
        assert driver.guests() == {"i": 3}

    asyncio.run(run())


def test_share_of_guests_cannot_be_stopped() -> None:
    script = Script(stop_failure_rate=0.25, seed=1)
    able = sum(script.can_stop("a", f"instance-{number}", 1) for number in range(2000))
    assert able == pytest.approx(1500, abs=60)
    assert Script().can_stop("a", "i", 1)

    async def run() -> None:
        driver = SimulatedDriver(HOST, Script(stop_failure_rate=1.0))
        await build(driver, instance())
        with pytest.raises(CannotStopGuests):
            await driver.stop("i")
        assert driver.guests() == {"i": 1}

    asyncio.run(run())


def test_tree_is_what_the_host_has() -> None:
    host = SimulatedHost(
        "a",
        {"VCPU": Inventory(4)},
        children=(SimulatedProvider("gpu0", {"VGPU": Inventory(2)}, ("CUSTOM_A100",)),),
        traits=("CUSTOM_FAST",),
        aggregates=("agg",),
    )
    tree = ProviderTree()
    node = tree.new_root("a", provider_uuid("a"))
    SimulatedDriver(host, Script()).update_provider_tree(tree, "a")
    root, child = tree.desired()
    assert root.inventory == host.inventory
    assert (root.traits, root.aggregates) == (frozenset(host.traits), frozenset(host.aggregates))
    assert (child.name, child.parent, child.inventory) == ("a-gpu0", node, {"VGPU": Inventory(2)})
    assert child.traits == {"CUSTOM_A100"}

"""Simulated hosts fail as their script says, in the same places for the same seed."""

import asyncio

import pytest

from roost.agent.drivers.simulated import (
    FailureRule,
    Script,
    SimulatedDriver,
    SimulatedHost,
    SimulatedProvider,
)
from roost.agent.errors import BuildFailed
from roost.agent.provider_tree import ProviderTree
from roost.model.instance import Instance
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

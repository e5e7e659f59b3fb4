"""The most that agents may offer, at the endpoint of agents."""

import asyncio
from pathlib import Path

import pytest

from roost.agent.protocol.types import SetInventories
from roost.conductor.agent_endpoint.offer_limits import NO_LIMITS, OfferLimits
from roost.conductor.agent_endpoint.relay import ProviderRelay
from roost.model.errors import OperatorError
from roost.model.inventory import Inventory
from roost.model.node import NodeReport
from roost.process.option_source import Source
from roost.server.options import read_conducting_options
from support.conducting import conducting

LIMITS = OfferLimits(ratio=16.0, totals={"VCPU": 64, "CUSTOM_GPU": 4})
ROOT = "node-a"


@pytest.mark.parametrize(
    ("inventories", "says"),
    [
        ({"VCPU": Inventory(65)}, "65 VCPU is above 64"),
        ({"VCPU": Inventory(64, allocation_ratio=16.5)}, "ratio 16.5 of VCPU is above 16"),
        ({"DISK_GB": Inventory(10, allocation_ratio=1e9)}, "of DISK_GB is above 16"),
        ({"VCPU": Inventory(64, allocation_ratio=16.0), "DISK_GB": Inventory(10**9)}, None),
    ],
)
def test_an_offer_beyond_the_limits_is_refused_with_the_option_and_changes_nothing(
    tmp_path: Path, inventories: dict[str, Inventory], says: str | None
) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            before = await now.placement.inventories(ROOT)
            relay = ProviderRelay(now.placement, limits=LIMITS)
            generation = (await now.placement.provider(ROOT)).generation
            write = SetInventories(ROOT, inventories, generation)
            written = await relay.write(ROOT, [write])
            if says is None:
                assert (written.done, written.refusal) == (1, None)
                return
            assert written.done == 0
            assert written.refusal is not None
            assert says in written.refusal.text
            assert "[conductor] agent_" in written.refusal.text
            refused = await relay.reshape(ROOT, [write], {})
            assert refused == written.refusal
            assert await now.placement.inventories(ROOT) == before
            assert (await ProviderRelay(now.placement).write(ROOT, [write])).done == 1, "without limits"

    asyncio.run(run())


def test_a_total_is_that_of_the_whole_tree(tmp_path: Path) -> None:
    """A host has as many children as it likes."""

    async def run() -> None:
        async with conducting(tmp_path) as now:
            relay = ProviderRelay(now.placement, limits=LIMITS)
            for number in range(3):
                uuid = f"00000000-0000-4000-8000-00000000000{number}"
                child = await now.placement.ensure_provider(uuid, f"a-{number}", ROOT)
                write = SetInventories(uuid, {"CUSTOM_GPU": Inventory(2)}, child.generation)
                written = await relay.write(ROOT, [write])
                assert (written.refusal is None) == (number < 2), number

    asyncio.run(run())


def test_reports_of_nodes_are_bounded_alike() -> None:
    report = NodeReport(node=ROOT, host="a", cell="cell1", vcpus=64, cpu_allocation_ratio=16.0)
    assert LIMITS.excess_of_report(report) is None
    more = NodeReport(node=ROOT, host="a", cell="cell1", vcpus=65)
    assert "65 VCPU" in (LIMITS.excess_of_report(more) or "")
    wide = NodeReport(node=ROOT, host="a", cell="cell1", memory_mb=1, ram_allocation_ratio=17.0)
    assert "17 of MEMORY_MB" in (LIMITS.excess_of_report(wide) or "")
    assert NO_LIMITS.excess_of_report(more) is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("agent_total_limits = VCPUS:64", "'VCPUS'"),
        ("agent_total_limits = VCPU:many", "'many'"),
        ("agent_ratio_limit = -1", "agent_ratio_limit"),
        ("agent_total_limits = VCPU:64,CUSTOM_GPU:4\nagent_ratio_limit = 16", None),
    ],
)
def test_limits_are_read_from_the_options(tmp_path: Path, line: str, says: str | None) -> None:
    file = tmp_path / "roost.conf"
    databases = f"[placement_database]\nconnection = sqlite:///{tmp_path}/p.db\n[api_database]\nconnection = sqlite:///{tmp_path}/a.db\n"
    file.write_text(f"{databases}[conductor]\n{line}\n")
    if says is None:
        assert read_conducting_options(Source((str(file),))).offers == LIMITS
        return
    with pytest.raises(OperatorError, match=says):
        read_conducting_options(Source((str(file),)))

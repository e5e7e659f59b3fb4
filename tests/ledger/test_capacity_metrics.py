"""Capacity and use as metrics: by class and zone, and of what is no more."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.ledger.capacity_metrics import CapacityMetrics
from roost.model.aggregate import Aggregate
from roost.model.inventory import Inventory
from roost.model.node import NodeReport
from roost.placement.service import PlacementService
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import start_counting, stop_counting
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.nodes.zones import zones
from support.ledgers import opened

HOSTS = [f"11111111-0000-4000-8000-{number:012}" for number in range(3)]


@pytest.fixture(autouse=True)
def counted() -> Iterator[None]:
    gauges = (metrics.CAPACITY, metrics.USED)
    for gauge in gauges:
        gauge.series.clear()
    start_counting(gauges)
    yield
    stop_counting()
    for gauge in gauges:
        gauge.series.clear()


def published() -> dict[tuple[str, ...], tuple[float, float]]:
    return {
        labels: (level.numbers()[0], metrics.USED.series[labels].numbers()[0])
        for labels, level in metrics.CAPACITY.series.items()
    }


def test_capacity_and_use_are_told_by_class_and_zone(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path / "api.db") as [ledger]:
            placement = PlacementService(ledger)
            for number, uuid in enumerate(HOSTS):
                await placement.ensure_provider(uuid, f"host-{number}")
                inventories = {"VCPU": Inventory(4, allocation_ratio=2.0)}
                if number == 2:
                    inventories["DISK_GB"] = Inventory(10, reserved=1)
                await placement.set_inventories(uuid, inventories)
            # The last host is in no zone, and one that placement does not know counts nowhere.
            table = NodeTable(
                NodeReport(host=f"host-{number}", node=uuid, cell="cell1", last_seen=0.0)
                for number, uuid in enumerate([*HOSTS, "99999999-0000-4000-8000-000000000000"])
            )
            west = Aggregate(
                uuid="a", name="west", metadata={"availability_zone": "west"}, members=frozenset(HOSTS[:2])
            )
            table.set_aggregates([west], {"a"})
            told = CapacityMetrics(ledger, lambda fleet: zones(table, "nova", fleet))
            told.publish()
            assert published() == {
                ("VCPU", "all"): (24, 0),
                ("DISK_GB", "all"): (9, 0),
                ("VCPU", "west"): (16, 0),
                ("VCPU", "nova"): (8, 0),
                ("DISK_GB", "nova"): (9, 0),
            }
            await placement.set_inventories(HOSTS[2], {"VCPU": Inventory(2)})
            told.publish()
            assert published() == {
                ("VCPU", "all"): (18, 0),
                ("DISK_GB", "all"): (0, 0),
                ("VCPU", "west"): (16, 0),
                ("VCPU", "nova"): (2, 0),
                ("DISK_GB", "nova"): (0, 0),
            }

    asyncio.run(run())


def test_a_process_without_zones_tells_the_sums_alone(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path / "api.db") as [ledger]:
            placement = PlacementService(ledger)
            await placement.ensure_provider(HOSTS[0], "host")
            await placement.set_inventories(HOSTS[0], {"VCPU": Inventory(4)})
            CapacityMetrics(ledger).publish()
            assert published() == {("VCPU", "all"): (4, 0)}

    asyncio.run(run())

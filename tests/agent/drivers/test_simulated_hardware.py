"""A simulated host with NUMA cells and PCI devices reports what its guests were assigned, and no more."""

import asyncio
from unittest.mock import Mock

import msgspec
import pytest

from roost.agent.agent_context import AsyncioAgentContext
from roost.agent.driver_calls import DriverService
from roost.agent.drivers.simulated import Script, SimulatedDriver, SimulatedHost
from roost.agent.errors import BuildFailed
from roost.agent.node_reports import node_reports, read_facts
from roost.agent.persistent_state import MemoryState
from roost.agent.troubles import Troubles
from roost.fleet.hardware.cpus import numbers_of
from roost.fleet.hardware.host_topology import decoded
from roost.fleet.hardware.pci_pools import pools_of
from roost.model.assignment import AssignedCell, AssignedDevices, Assignment, digest
from roost.model.instance import Instance
from roost.model.node import NodeInstance, NodeReport
from support.cells import instance, selection
from support.numa_hosts import reported, reported_cell

NUMA = reported(
    reported_cell(0, range(4), pages={4: 1000, 2048: 512}),
    reported_cell(1, range(4, 8), pages={4: 1000, 2048: 512}),
)
POOL: dict[str, object] = {"vendor_id": "8086", "product_id": "1520", "count": 2, "numa_node": 0}
NAMED: dict[str, object] = {**POOL, "product_id": "1521", "devices": ["0000:81:00.0", "0000:81:00.1"]}
HOST = SimulatedHost("a", {}, numa_topology=NUMA, pci_device_pools=(POOL, NAMED))
KEY, NAMED_KEY = (pools_of([each])[0].key for each in (POOL, NAMED))
LARGE = Assignment(
    "node-a",
    (AssignedCell(0, 1, pinned=((0, 5), (1, 6)), reserved=(4,), memory_mb=512, page_size_kb=2048),),
    (AssignedDevices("r", NAMED_KEY, 1, ("0000:81:00.0",)), AssignedDevices("s", KEY, 1)),
)
FLOATING = Assignment("node-a", (AssignedCell(0, 0, shared=3, memory_mb=2),))


async def build(driver: SimulatedDriver, wanted: Instance) -> None:
    await driver.prepare(wanted)
    await driver.start(wanted)


def assigned(uuid: str, assignment: Assignment | None, **more: object) -> Instance:
    chosen = msgspec.structs.replace(selection("a"), assignment=assignment)
    return instance(uuid, selection=chosen, **more)


def test_the_hardware_has_what_guests_use_until_they_are_destroyed() -> None:
    async def run() -> None:
        driver = SimulatedDriver(HOST, Script())
        empty = driver.hardware()
        await build(driver, assigned("i", LARGE))
        await driver.recover([assigned("j", FLOATING), instance("k")])
        hardware = driver.hardware()
        assert hardware is not None
        assert hardware.numa_topology is not None
        first, second = decoded(hardware.numa_topology).cells
        assert (first.cpu_usage, first.memory_used_mb, list(numbers_of(first.pinned))) == (3, 2, [])
        assert (second.cpu_usage, second.memory_used_mb, list(numbers_of(second.pinned))) == (
            0,
            512,
            [4, 5, 6],
        )
        assert [pages.free for pages in (*first.pages, *second.pages)] == [488, 512, 1000, 256]
        assert [pool["count"] for pool in hardware.pci_device_pools] == [1, 1]
        assert hardware.pci_device_pools[1]["devices"] == ["0000:81:00.1"]
        assert hardware.counted == {"i": LARGE, "j": FLOATING}
        for guest in "ijk":
            await driver.destroy(guest)
        assert driver.hardware() == empty

    asyncio.run(run())


def test_a_guest_is_not_built_on_what_another_one_has() -> None:
    async def run() -> None:
        driver = SimulatedDriver(HOST, Script())
        await build(driver, assigned("i", LARGE))
        with pytest.raises(BuildFailed, match=r"guest i has host CPU 6, PCI device 0000:81:00\.0"):
            cells = (AssignedCell(0, 1, pinned=((0, 6), (1, 7))),)
            await build(driver, assigned("j", Assignment("node-a", cells, LARGE.devices[:1])))
        assert set(driver.guests()) == {"i"}
        await build(driver, assigned("i", LARGE, attempt=2))

    asyncio.run(run())


async def report_of(driver: SimulatedDriver) -> NodeReport:
    """What the agent of host a reports of its node."""
    context = AsyncioAgentContext(Mock(), DriverService(driver), MemoryState())
    facts = await read_facts(context, "a", Troubles(context, "a"))
    guests = driver.guests()
    [report] = node_reports(
        "a", facts, enabled=True, running=guests, building=(), failed_builds=0, node_of={}, refused={}
    )
    return report


def test_a_report_says_which_assignment_of_each_guest_it_counts() -> None:
    async def run() -> None:
        driver = SimulatedDriver(HOST, Script())
        await build(driver, assigned("i", LARGE))
        await build(driver, instance("k"))
        report = await report_of(driver)
        assert report.instances == {
            "i": NodeInstance(assignment=digest(LARGE)),
            "k": NodeInstance(assignment=""),
        }
        assert report.numa_topology is not None
        assert list(numbers_of(decoded(report.numa_topology).cells[1].pinned)) == [4, 5, 6]
        assert len(report.pci_device_pools) == 2

    asyncio.run(run())


class Broken(SimulatedDriver):
    """A driver that cannot tell its hardware, nor measure anything."""

    def hardware(self) -> None:
        raise OSError("no sysfs")

    def metrics(self) -> dict[str, float]:
        raise OSError("no sensor \udc80")


def test_what_the_driver_cannot_tell_is_left_out_of_the_report() -> None:
    report = asyncio.run(report_of(Broken(HOST, Script())))
    assert (report.numa_topology, report.pci_device_pools, report.metrics) == (None, (), {})

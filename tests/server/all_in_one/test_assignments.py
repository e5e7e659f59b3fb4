"""Assignments through a whole system: claimed, built on, reported, kept over a restart, and given back."""

import asyncio
from pathlib import Path

import msgspec

from roost.agent.drivers.simulated import SimulatedHost
from roost.fleet.hardware.cpus import numbers_of
from roost.fleet.hardware.host_topology import decoded
from roost.model.assignment import Assignment
from roost.model.instance import ACTIVE, BuildRequest
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.model.spec import Flavor
from roost.server.all_in_one.layout import LayoutHost, SystemLayout
from roost.server.all_in_one.system import System
from support.hardware_clouds import OPTIONS, check_assignments
from support.numa_hosts import reported, reported_cell
from support.systems import differences, opened_system, wanted

HOSTS = tuple(
    SimulatedHost(
        name,
        {"PCPU": Inventory(4), "MEMORY_MB": Inventory(4096)},
        numa_topology=reported(reported_cell(0, range(4))),
    )
    for name in ("a", "b")
)
LAYOUT = SystemLayout({"cell1": tuple(LayoutHost(host) for host in HOSTS)})
PINNED = Flavor("pinned", 2, 64, extra_specs={"hw:cpu_policy": "dedicated"})


async def assigned(system: System) -> dict[str, Assignment]:
    """The assignment of each instance in the ledger, which is that of its row in the cell."""
    fleet = await system.ledger.current()
    ledger = {name: each for node in fleet.assigned.nodes() for name, each in fleet.assigned.on(node).items()}
    rows = {each.uuid: each for cell in system.cells.values() for each in await cell.every()}
    for name, assignment in ledger.items():
        selection = rows[name].selection
        assert selection is not None
        assert selection.assignment == assignment
        assert assignment.node == rows[name].node
    return ledger


def pinned_cpus(system: System, host: str) -> list[int]:
    """The CPUs that the last report of a host says are pinned."""
    index = system.table.index_of_node(provider_uuid(host))
    assert index is not None
    topology = system.table.report(index).numa_topology
    assert topology is not None
    return numbers_of(decoded(topology).cells[0].pinned)


def pinned(count: int) -> BuildRequest:
    request = wanted("i", count)
    spec = msgspec.structs.replace(request.spec, flavor=PINNED)
    return msgspec.structs.replace(request, spec=spec)


def test_cpus_go_to_one_instance_each_from_the_claim_to_the_guest_and_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_system(tmp_path, LAYOUT, scheduler=OPTIONS) as system:
            await system.super_conductor.accept(pinned(5))
            await system.settle()
            first = await assigned(system)
            assert len(first) == 4
            check_assignments(first.values())
        async with opened_system(tmp_path, LAYOUT, scheduler=OPTIONS) as system:
            await system.settle()
            assert await assigned(system) == first
            # The agents found the guests where their cells' rows say that they are.
            assert [pinned_cpus(system, host) for host in "ab"] == [(0, 1, 2, 3)] * 2
            gone = min(first)
            await system.super_conductor.delete([gone])
            await system.settle()
            assert set(await assigned(system)) == set(first) - {gone}
        assert await differences(tmp_path) == []

    asyncio.run(run())


def test_a_build_that_fails_gives_its_cpus_back_and_gets_others_on_the_alternate(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_system(tmp_path, LAYOUT, failure_rate=0.5, scheduler=OPTIONS) as system:
            await system.super_conductor.accept(pinned(2))
            await system.settle()
            every = [each for cell in system.cells.values() for each in await cell.every()]
            assert any(each.attempt > 1 for each in every)
            active = {each.uuid for each in every if each.state == ACTIVE}
            assert active
            assert set(await assigned(system)) == active
            # All that is left free can be had.
            free = 4 - len(active)
            again = msgspec.structs.replace(
                pinned(free), request_id="j", instances=tuple(f"j-{number}" for number in range(free))
            )
            await system.super_conductor.accept(again)
            await system.settle()
            left = await assigned(system)
            check_assignments(left.values())
            assert left.keys() >= active
        assert await differences(tmp_path) == []

    asyncio.run(run())

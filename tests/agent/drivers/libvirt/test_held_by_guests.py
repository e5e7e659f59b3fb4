"""Claims on a host with libvirt move to where its driver reports what an agent before it told elsewhere."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from roost.agent.drivers.libvirt import machinery
from roost.agent.drivers.libvirt.connection import LibvirtConnection
from roost.agent.drivers.libvirt.driver import LibvirtDriver
from roost.agent.drivers.libvirt.guest_options import DriverOptions
from roost.agent.drivers.libvirt.held_by_guests import HeldByGuests, HostProviders, move, what_moves
from roost.agent.drivers.libvirt.images import DiskOptions
from roost.agent.drivers.libvirt.inventory import CpuSets, MdevOptions
from roost.agent.drivers.libvirt.providers import ChildProvider
from roost.agent.errors import ReshapeRefused
from roost.agent.provider_tree import ProviderTree
from roost.model.assignment import AssignedCell, Assignment
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.model.spec import Flavor
from support.agents import hosts
from support.libvirt_hosts import devices_of, instance_of, needs_libvirt
from support.reshaping import ROOT, follows, held, put

needs_libvirt()

NOBODY = HeldByGuests({}, {})
CARDS = tuple(ChildProvider(f"pci_{n}", {"VGPU": Inventory(2, max_unit=2)}) for n in "ab")
A, B = (provider_uuid(f"a_{card.suffix}") for card in CARDS)
PCPUS = {"VCPU": Inventory(4), "PCPU": Inventory(4)}


def tree_with(**totals: int) -> ProviderTree:
    tree = ProviderTree()
    tree.new_root("a", ROOT)
    tree.update_inventory("a", {name: {"total": total} for name, total in totals.items()})
    return tree


def claims(**consumers: dict[str, int]) -> dict[str, dict[str, Any]]:
    return {
        name: {"allocations": {ROOT: {"resources": dict(resources)}}} for name, resources in consumers.items()
    }


def amounts(allocations: dict[str, dict[str, Any]]) -> dict[str, dict[str, dict[str, int]]]:
    return {
        consumer: {uuid: each["resources"] for uuid, each in record["allocations"].items()}
        for consumer, record in allocations.items()
    }


def test_gpus_go_to_the_card_whose_devices_a_guest_has_and_to_the_emptiest_one_otherwise() -> None:
    shape = HostProviders({"VCPU": Inventory(4)}, CARDS, frozenset())
    tree, allocations = (
        tree_with(VCPU=4, VGPU=4),
        claims(x={"VGPU": 1}, y={"VGPU": 1, "VCPU": 1}, z={"VGPU": 2}),
    )
    guests = HeldByGuests({}, {"x": frozenset({"pci_b"}), "y": frozenset({"pci_b"})})
    assert what_moves(tree, "a", shape, guests) == "VGPU of node a move"
    move(tree, "a", shape, guests, allocations)
    assert amounts(allocations) == {
        "x": {B: {"VGPU": 1}},
        "y": {ROOT: {"VCPU": 1}, B: {"VGPU": 1}},
        "z": {A: {"VGPU": 2}},
    }
    assert what_moves(tree_with(VCPU=4), "a", shape, guests) is None


def test_gpus_that_fit_no_card_are_named() -> None:
    shape = HostProviders({"VCPU": Inventory(4)}, CARDS, frozenset())
    with pytest.raises(ReshapeRefused, match="consumer x holds 3 VGPU, which fit none"):
        move(tree_with(VGPU=4), "a", shape, NOBODY, claims(x={"VGPU": 3}))


def test_only_pinned_guests_get_dedicated_cpus() -> None:
    shape = HostProviders(PCPUS, (), frozenset({4, 5, 6, 7}))
    guests = HeldByGuests({"x": frozenset({4, 5})}, {})
    assert what_moves(tree_with(VCPU=8), "a", shape, NOBODY) is None
    assert what_moves(tree_with(VCPU=4, PCPU=4), "a", shape, guests) is None
    assert what_moves(tree_with(VCPU=8), "a", shape, guests) == "VCPU of pinned guests of node a move"
    allocations = claims(x={"VCPU": 3, "MEMORY_MB": 8}, y={"VCPU": 1})
    move(tree_with(VCPU=8), "a", shape, guests, allocations)
    assert amounts(allocations) == {
        "x": {ROOT: {"VCPU": 1, "MEMORY_MB": 8, "PCPU": 2}},
        "y": {ROOT: {"VCPU": 1}},
    }


def test_guests_that_dedicated_cpus_do_not_serve_are_named() -> None:
    guests = HeldByGuests({"x": frozenset({1, 4})}, {})
    shape = HostProviders(PCPUS, (), frozenset({4, 5, 6, 7}))
    with pytest.raises(ReshapeRefused, match=r"guest x is pinned to CPUs \[1\], which are not in"):
        move(tree_with(VCPU=8), "a", shape, guests, claims(x={"VCPU": 2}))
    shape = HostProviders({"PCPU": Inventory(8)}, (), frozenset(range(8)))
    with pytest.raises(ReshapeRefused, match="consumer y holds 1 VCPU that no CPUs are pinned for"):
        move(tree_with(VCPU=8), "a", shape, guests, claims(x={"VCPU": 2}, y={"VCPU": 1}))


@pytest.fixture
def hypervisor() -> Iterator[LibvirtConnection]:
    connection = LibvirtConnection("test:///default", 20.0)
    connection.call_now(lambda opened: opened.getInfo())
    yield connection
    connection.close()


def test_host_of_an_agent_before_is_reshaped_with_its_guests(
    hypervisor: LibvirtConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = Assignment(ROOT, (AssignedCell(0, 1, pinned=((0, 8), (1, 9)), memory_mb=64),))
    flat = {"VCPU": Inventory(16), "MEMORY_MB": Inventory(3072), "VGPU": Inventory(14)}

    def driver(**options: Any) -> LibvirtDriver:
        made = LibvirtDriver(
            "a",
            DriverOptions(disks=DiskOptions(tmp_path / "disks"), counts_others=False, **options),
            hypervisor,
        )
        read = made._read
        made._read = lambda opened: read(opened)._replace(devices=devices_of("skylake"))  # type: ignore[method-assign]
        return made

    async def run() -> None:
        async with hosts(tmp_path) as world:
            await world.placement.ensure_provider(ROOT, "a")
            await world.placement.set_inventories(ROOT, flat)
            await put(world, "one", assignment=pinned, VCPU=2, MEMORY_MB=64, VGPU=1)
            await put(world, "two", VCPU=1, MEMORY_MB=64)
            before = driver()
            for uuid, cpus, assignment in (("one", 2, pinned), ("two", 1, None)):
                guest = instance_of(uuid, Flavor("f", cpus, 64), assignment=assignment)
                guest = replace(guest, attempt=1)
                await before.prepare(guest)
                await before.start(guest)
            sets = CpuSets(frozenset(range(8)), frozenset(range(8, 16)))
            world.a = after = driver(cpu_sets=sets, mdevs=MdevOptions(("nvidia-222",)))  # type: ignore[assignment]
            async with world.running():
                pass
            card = "a_pci_0000_86_00_0"
            assert await held(world, "one") == {"a": {"PCPU": 2, "MEMORY_MB": 64}, card: {"VGPU": 1}}
            assert await held(world, "two") == {"a": {"VCPU": 1, "MEMORY_MB": 64}}
            assert await follows(world, "one") and await follows(world, "two")
            totals = {name: each.total for name, each in (await world.placement.inventories(ROOT)).items()}
            assert totals.keys() == {"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"}
            assert (totals["VCPU"], totals["PCPU"]) == (8, 8)
            assert after.guests() == {"one": 1, "two": 1}
            for uuid in ("one", "two"):
                await after.destroy(uuid)

    monkeypatch.setattr(machinery, "make_mdev", lambda *_: None)
    asyncio.run(run())

"""The driver on libvirt's own test hypervisor, which has NUMA cells, no domain capabilities and no QEMU."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from roost.agent.driver_calls import DriverService
from roost.agent.drivers.libvirt import machinery
from roost.agent.drivers.libvirt.connection import LibvirtConnection
from roost.agent.drivers.libvirt.driver import LibvirtDriver
from roost.agent.drivers.libvirt.guest_options import DriverOptions
from roost.agent.drivers.libvirt.images import DiskOptions
from roost.agent.drivers.libvirt.inventory import CpuSets, MdevOptions
from roost.agent.errors import BuildFailed, HypervisorAway, NoSuchGuest, UnusableOptions
from roost.agent.provider_tree import ProviderTree
from roost.fleet.hardware.cpus import numbers_of
from roost.fleet.hardware.host_topology import decoded
from roost.model.assignment import AssignedCell, Assignment
from roost.model.names import provider_uuid
from roost.model.spec import Flavor
from support.libvirt_hosts import devices_of, instance_of, needs_libvirt

needs_libvirt()

URI = "test:///default"
ROOT = "11111111-1111-4111-8111-111111111111"
SETS = CpuSets(frozenset(range(4)), frozenset(range(8, 16)))
PINNED = Assignment("node", (AssignedCell(0, 1, pinned=((0, 8), (1, 9)), memory_mb=64),))


@pytest.fixture
def hypervisor() -> Iterator[LibvirtConnection]:
    """A connection that lasts for the test: the hypervisor forgets all with its last one."""
    connection = LibvirtConnection(URI, 20.0)
    connection.call_now(lambda opened: opened.getInfo())
    yield connection
    connection.close()


def driver(connection: LibvirtConnection, folder: Path, **options: object) -> LibvirtDriver:
    facts: dict[str, object] = {"disks": DiskOptions(folder), "cpu_sets": SETS, "refresh_seconds": 0.0}
    return LibvirtDriver("a", DriverOptions(**{**facts, **options}), connection)  # type: ignore[arg-type]


def names(connection: LibvirtConnection) -> set[str]:
    return connection.call_now(lambda opened: {each.name() for each in opened.listAllDomains()})


def test_the_host_reports_what_it_has(hypervisor: LibvirtConnection, tmp_path: Path) -> None:
    async def run() -> None:
        tree = ProviderTree()
        tree.put_root("a", ROOT)
        driver(hypervisor, tmp_path, counts_others=False).update_provider_tree(tree, "a")
        found = tree.data("a")
        totals = {name: each["total"] for name, each in found.inventory.items()}
        assert totals.keys() == {"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"}
        assert (totals["VCPU"], totals["PCPU"], totals["MEMORY_MB"]) == (4, 8, 3072)
        assert found.traits == {"HW_ARCH_I686", "COMPUTE_SOCKET_PCI_NUMA_AFFINITY"}

    asyncio.run(run())


def test_guests_of_others_take_memory_unless_they_do_not_count(
    hypervisor: LibvirtConnection, tmp_path: Path
) -> None:
    async def run() -> None:
        reserved = []
        for counts in (True, False):
            tree = ProviderTree()
            tree.put_root("a", ROOT)
            driver(hypervisor, tmp_path, counts_others=counts).update_provider_tree(tree, "a")
            reserved.append(tree.data("a").inventory["MEMORY_MB"]["reserved"])
        # The hypervisor's own guest claims to have more than the host has.
        assert reserved == [3072, 512]

    asyncio.run(run())


def test_a_guest_is_defined_started_and_destroyed_and_others_are_left_alone(
    hypervisor: LibvirtConnection, tmp_path: Path
) -> None:
    async def run() -> None:
        there = driver(hypervisor, tmp_path)
        wanted = instance_of("i", Flavor("f", 1, 64, 1))
        await there.prepare(wanted)
        assert (names(hypervisor), there.guests()) == ({"test", "roost-i"}, {})
        await there.prepare(wanted)
        await there.start(wanted)
        await there.start(wanted)
        assert there.guests() == {"i": 1}
        assert (tmp_path / "roost-i" / "disk").stat().st_size == 1024**3
        await there.destroy("i")
        await there.destroy("i")
        assert (names(hypervisor), there.guests()) == ({"test"}, {})
        assert list(tmp_path.iterdir()) == []

    asyncio.run(run())


def test_a_stopped_guest_keeps_its_disk_and_is_started_again_by_another_driver(
    hypervisor: LibvirtConnection, tmp_path: Path
) -> None:
    async def run() -> None:
        there, wanted = (
            driver(hypervisor, tmp_path),
            instance_of("i", Flavor("f", 2, 64, 1), assignment=PINNED),
        )
        await there.prepare(wanted)
        await there.start(wanted)
        disk = tmp_path / "roost-i" / "disk"
        disk.write_bytes(b"what the guest wrote")
        await there.stop("i")
        await there.stop("i")
        assert (names(hypervisor), there.guests()) == ({"test", "roost-i"}, {})
        hardware = there.hardware()
        assert hardware is not None
        assert hardware.counted == {"i": PINNED}
        other = driver(hypervisor, tmp_path)
        await other.recover([wanted])
        assert other.guests() == {}
        with pytest.raises(NoSuchGuest):
            await other.start_again(msgspec.structs.replace(wanted, attempt=2))
        await other.start_again(wanted)
        await other.start_again(wanted)
        assert (other.guests(), disk.read_bytes()) == ({"i": 1}, b"what the guest wrote")
        await other.stop("i")
        await other.destroy("i")
        for call in (other.stop("i"), other.start_again(wanted)):
            with pytest.raises(NoSuchGuest):
                await call
        assert names(hypervisor) == {"test"}

    asyncio.run(run())


def test_a_later_attempt_replaces_a_stopped_guest(hypervisor: LibvirtConnection, tmp_path: Path) -> None:
    async def run() -> None:
        there, first = driver(hypervisor, tmp_path), instance_of("i", Flavor("f", 1, 64, 1))
        await there.prepare(first)
        await there.start(first)
        (tmp_path / "roost-i" / "of the first").touch()
        await there.stop("i")
        later = msgspec.structs.replace(first, attempt=3)
        await there.prepare(later)
        await there.start(later)
        assert there.guests() == {"i": 3}
        assert [each.name for each in (tmp_path / "roost-i").iterdir()] == ["disk"]

    asyncio.run(run())


def test_another_driver_finds_the_guests_with_their_assignments(
    hypervisor: LibvirtConnection, tmp_path: Path
) -> None:
    async def run() -> None:
        first = driver(hypervisor, tmp_path)
        wanted = instance_of("i", Flavor("f", 2, 64), assignment=PINNED, attempt=2)
        await first.prepare(wanted)
        await first.start(wanted)
        second = driver(hypervisor, tmp_path)
        await second.recover([wanted])
        assert second.guests() == {"i": 2}
        hardware = second.hardware()
        assert hardware is not None
        assert hardware.counted == {"i": PINNED}
        assert hardware.numa_topology is not None
        used = decoded(hardware.numa_topology).cells[1]
        assert (numbers_of(used.pinned), used.memory_used_mb) == ((8, 9), 64)
        clash = instance_of("j", Flavor("f", 2, 64), assignment=PINNED)
        with pytest.raises(BuildFailed, match="guest i has host CPU 8, host CPU 9"):
            await second.prepare(clash)
        await second.destroy("i")
        await second.prepare(clash)

    asyncio.run(run())


def test_a_guest_that_ended_by_itself_is_not_there_at_a_later_look(
    hypervisor: LibvirtConnection, tmp_path: Path
) -> None:
    async def run() -> None:
        there = driver(hypervisor, tmp_path)
        await there.prepare(instance_of())
        await there.start(instance_of())
        hypervisor.call_now(lambda opened: opened.lookupByName("roost-i").destroy())
        while there.guests():
            await asyncio.sleep(0)
        assert "roost-i" in names(hypervisor)

    asyncio.run(run())


def test_a_foreign_domain_of_the_name_fails_the_build_and_stays(
    hypervisor: LibvirtConnection, tmp_path: Path
) -> None:
    text = "<domain type='test'><name>roost-i</name><memory>1</memory><os><type>hvm</type></os></domain>"

    async def run() -> None:
        there = driver(hypervisor, tmp_path)
        with pytest.raises(BuildFailed) as failed:
            await there.prepare(instance_of())
        assert failed.value.code == "ForeignDomain"
        await there.destroy("i")

    hypervisor.call_now(lambda opened: opened.defineXML(text))
    asyncio.run(run())
    assert "roost-i" in names(hypervisor)


def test_what_guests_of_others_are_pinned_to_is_taken(hypervisor: LibvirtConnection, tmp_path: Path) -> None:
    pins = "<cputune><vcpupin vcpu='0' cpuset='9'/></cputune>"
    text = f"<domain type='test'><name>x</name><memory>1</memory>{pins}<os><type>hvm</type></os></domain>"

    async def run() -> list[list[object]]:
        found = []
        for counts in (True, False):
            hardware = driver(hypervisor, tmp_path, counts_others=counts).hardware()
            assert hardware is not None
            assert hardware.numa_topology is not None
            found.append([numbers_of(cell.pinned) for cell in decoded(hardware.numa_topology).cells])
        return found

    hypervisor.call_now(lambda opened: opened.createXML(text))
    assert asyncio.run(run()) == [[(), (9,)], [(), ()]]


def test_units_of_a_gpu_become_mediated_devices_of_it_which_the_domain_names(
    hypervisor: LibvirtConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, str, str]] = []

    async def run() -> None:
        there = driver(hypervisor, tmp_path, mdevs=MdevOptions(("nvidia-222",)))
        there._view = there._view._replace(devices=devices_of("skylake"))
        gpu = provider_uuid("a_pci_0000_86_00_0")
        wanted = instance_of("i", allocations={"node": {"VCPU": 1}, gpu: {"VGPU": 2}}, attempt=2)
        with monkeypatch.context() as patched:
            patched.setattr(machinery, "make_mdev", lambda _, *device: made.append(device))
            await there.prepare(wanted)
        assert [each[:2] for each in made] == [("pci_0000_86_00_0", "nvidia-222")] * 2
        [domain] = [each for each in there._view.domains.values() if each.own is not None]
        assert domain.mdevs == {uuid for *_, uuid in made}
        assert len(domain.mdevs) == 2

    asyncio.run(run())


class MdevHost:
    """What libvirt has of mediated devices."""

    def __init__(self) -> None:
        self.there: dict[str, str] = {}

    def listAllDevices(self) -> list["MdevHost.Device"]:  # noqa: N802
        return [self.Device(self, uuid) for uuid in self.there]

    def nodeDeviceCreateXML(self, text: str) -> None:  # noqa: N802
        device = ElementTree.fromstring(text)
        self.there[device.findtext("capability/uuid") or ""] = device.findtext("parent") or ""

    class Device:
        def __init__(self, host: "MdevHost", uuid: str) -> None:
            self._host, self._uuid = host, uuid

        def XMLDesc(self) -> str:  # noqa: N802
            name = f"<name>mdev_{self._uuid.replace('-', '_')}_0000_86_00_0</name>"
            return f"<device>{name}<capability type='mdev'><type id='t'/></capability></device>"

        def destroy(self) -> None:
            del self._host.there[self._uuid]


def test_a_mediated_device_is_made_once_and_removed_once(hypervisor: LibvirtConnection) -> None:
    host, uuid = MdevHost(), "4b20d080-1b54-4048-85b3-a6a62d165c01"
    for _ in "ab":
        machinery.make_mdev(host, "pci_0000_86_00_0", "t", uuid)
    assert host.there == {uuid: "pci_0000_86_00_0"}
    for _ in "ab":
        machinery.remove_mdevs(hypervisor, host, [uuid])
    assert host.there == {}


def test_what_libvirt_refuses_fails_the_build_with_its_words(
    hypervisor: LibvirtConnection, tmp_path: Path
) -> None:
    async def run() -> None:
        there = driver(hypervisor, tmp_path)
        with pytest.raises(BuildFailed, match="libvirt: ") as failed:
            await there.start(instance_of("never-defined"))
        assert failed.value.retryable
        many = instance_of("many", msgspec.structs.replace(Flavor("f", 1, 64), vcpus=0))
        with pytest.raises(BuildFailed, match="libvirt: ") as failed:
            await there.prepare(many)
        assert failed.value.code == "HypervisorFailed"

    asyncio.run(run())


def test_a_look_that_fails_is_told_until_one_succeeds(
    hypervisor: LibvirtConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        there = driver(hypervisor, tmp_path)

        async def fail(work: object) -> None:
            raise HypervisorAway("gone")

        with monkeypatch.context() as patched:
            patched.setattr(hypervisor, "read", fail)
            with pytest.raises(HypervisorAway, match="gone"):
                await there.recover(())
            with pytest.raises(HypervisorAway, match="gone"):
                there.guests()
        await there.recover(())
        assert there.guests() == {}

    asyncio.run(run())


def test_a_build_that_is_ended_has_ended_before_the_guest_is_destroyed(
    hypervisor: LibvirtConnection, tmp_path: Path
) -> None:
    async def run() -> None:
        service = DriverService(driver(hypervisor, tmp_path))
        building = asyncio.create_task(service.prepare(instance_of()))
        while not (tmp_path / "roost-i").exists():
            await asyncio.sleep(0)
        building.cancel()
        await asyncio.wait([building])
        await service.destroy("i")
        assert await service.guests() == {}

    asyncio.run(run())
    assert names(hypervisor) == {"test"}


def test_a_hypervisor_that_cannot_be_reached_and_options_that_do_not_fit_are_told(
    hypervisor: LibvirtConnection, tmp_path: Path
) -> None:
    with pytest.raises(HypervisorAway, match="cannot be opened"):
        driver(LibvirtConnection("test:///no/such/file", 5.0), tmp_path)
    with pytest.raises(UnusableOptions, match="virt_type is kvm, the host has test"):
        driver(hypervisor, tmp_path, virt_type="kvm")

"""Disks in a folder that two hosts share, each with a test hypervisor of its own."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.agent.driver_calls import DriverService
from roost.agent.drivers.libvirt.connection import LibvirtConnection
from roost.agent.drivers.libvirt.driver import LibvirtDriver
from roost.agent.drivers.libvirt.guest_options import DriverOptions
from roost.agent.drivers.libvirt.images import DISK_FAILED, DiskOptions
from roost.agent.drivers.libvirt.shared_disks import NO_DISK, folder_id, give_id
from roost.agent.errors import BuildFailed
from roost.model.instance import Instance
from roost.model.spec import Flavor
from support.libvirt_hosts import instance_of, needs_libvirt

needs_libvirt()

NODE = """
<node><cpu><mhz>2000</mhz><model>i686</model><active>4</active><nodes>1</nodes><sockets>1</sockets>
<cores>4</cores><threads>1</threads></cpu><memory>8388608</memory></node>
"""
FLAVOR = Flavor("f", 1, 64, 1)
WRITTEN = b"what the guest wrote"


class Hosts:
    """Hosts ``a`` and ``b`` with their drivers."""

    def __init__(self, folder: Path) -> None:
        (folder / "node.xml").write_text(NODE)
        uri = f"test://{folder / 'node.xml'}"
        self.folder = folder / "instances"
        self.folder.mkdir()
        give_id(self.folder)
        self.connections = {host: LibvirtConnection(uri, 20.0) for host in "ab"}
        self.a, self.b = self.driver("a"), self.driver("b")

    def driver(self, host: str, folder: Path | None = None) -> LibvirtDriver:
        disks = DiskOptions(folder or self.folder, shared=True)
        options = DriverOptions(disks=disks, refresh_seconds=0.0)
        return LibvirtDriver(host, options, self.connections[host])

    @property
    def disks(self) -> list[Path]:
        return sorted((self.folder / "roost-i").glob("disk-*"))


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    there = Hosts(tmp_path)
    yield there
    for connection in there.connections.values():
        connection.close()


def attempt(number: int, *, finds: bool, flavor: Flavor = FLAVOR, **others: Any) -> Instance:
    wanted = instance_of("i", flavor, **others)
    return msgspec.structs.replace(wanted, attempt=number, finds_disks=finds)


async def built(on: LibvirtDriver, wanted: Instance) -> None:
    await on.prepare(wanted)
    await on.start(wanted)


async def built_and_written(hosts: Hosts) -> Path:
    await built(hosts.a, attempt(1, finds=False))
    [disk] = hosts.disks
    with disk.open("r+b") as opened:
        opened.write(WRITTEN)
    return disk


def has_written(disk: Path) -> bool:
    with disk.open("rb") as opened:
        return opened.read(len(WRITTEN)) == WRITTEN


def test_a_disk_goes_with_the_instance_to_another_host_and_back(hosts: Hosts) -> None:
    async def run() -> None:
        disk = await built_and_written(hosts)
        moved = attempt(2, finds=True)
        await hosts.b.prepare(moved)
        await hosts.a.stop("i")
        await hosts.b.start(moved)
        assert (hosts.a.guests(), hosts.b.guests()) == ({}, {"i": 2})
        text = hosts.connections["b"].call_now(lambda opened: opened.lookupByName("roost-i").XMLDesc())
        assert str(disk) in text
        # Reverted: the target is destroyed after the source has started its guest again.
        await hosts.b.stop("i")
        await hosts.a.start_again(attempt(1, finds=False))
        await hosts.b.destroy("i")
        assert hosts.disks == [disk]
        # And moved once more, this time for good.
        again = attempt(3, finds=True)
        await hosts.b.prepare(again)
        await hosts.a.stop("i")
        await hosts.b.start(again)
        await hosts.a.destroy("i")
        assert hosts.disks == [disk]
        assert has_written(disk)

    asyncio.run(run())


def test_a_target_that_fails_takes_nothing_with_it(hosts: Hosts) -> None:
    async def run() -> None:
        disk = await built_and_written(hosts)
        await hosts.b.prepare(attempt(2, finds=True))
        await hosts.b.destroy("i")
        assert hosts.disks == [disk]
        await hosts.a.stop("i")
        await hosts.a.start_again(attempt(1, finds=False))
        assert has_written(disk)

    asyncio.run(run())


def test_a_deletion_removes_the_disk_whoever_runs_the_guest_and_twice_is_no_error(hosts: Hosts) -> None:
    async def run() -> None:
        await built_and_written(hosts)
        moved = attempt(2, finds=True)
        await hosts.b.prepare(moved)
        await hosts.a.stop("i")
        await hosts.b.start(moved)
        service = DriverService(hosts.b)
        await service.destroy("i")
        assert hosts.disks
        await service.remove_disks("i")
        assert not (hosts.folder / "roost-i").exists()
        # The source, which was cut off, is back.
        await hosts.a.destroy("i")
        await DriverService(hosts.a).remove_disks("i")

    asyncio.run(run())


def test_a_shelved_instance_has_its_disk_while_no_host_has_a_guest_of_it(hosts: Hosts) -> None:
    async def run() -> None:
        disk = await built_and_written(hosts)
        assert await DriverService(hosts.a).keeps_shelved()
        await DriverService(hosts.a).destroy("i")
        assert (hosts.a.guests(), has_written(disk)) == ({}, True)
        again = attempt(2, finds=True)
        await hosts.b.prepare(again)
        await hosts.b.destroy("i")
        assert has_written(disk)
        await hosts.b.prepare(again)
        await hosts.b.start(again)
        assert (hosts.b.guests(), has_written(disk)) == ({"i": 2}, True)
        # It is shelved again, and deleted by a host that had no guest of it for long.
        await hosts.b.destroy("i")
        service = DriverService(hosts.a)
        await service.destroy("i")
        await service.remove_disks("i")
        assert not (hosts.folder / "roost-i").exists()

    asyncio.run(run())


def test_two_folders_that_are_not_the_same_lose_nothing(hosts: Hosts, tmp_path: Path) -> None:
    async def run() -> None:
        disk = await built_and_written(hosts)
        other = tmp_path / "other"
        # As on a machine that was installed from a copy of the first one's disk.
        other.mkdir()
        shutil.copy(hosts.folder / ".roost-folder", other)
        b = hosts.driver("b", other)
        assert b.disk_store == hosts.a.disk_store
        with pytest.raises(BuildFailed, match="host b does not find the disk of the instance") as failed:
            await b.prepare(attempt(2, finds=True))
        assert (failed.value.code, failed.value.retryable) == (NO_DISK, True)
        await b.destroy("i")
        assert hosts.a.guests() == {"i": 1}
        assert has_written(disk)

    asyncio.run(run())


def test_the_hosts_of_one_folder_tell_one_store_and_a_folder_without_an_id_none(
    hosts: Hosts, tmp_path: Path
) -> None:
    assert hosts.a.disk_store == hosts.b.disk_store == folder_id(hosts.folder) is not None
    other = tmp_path / "other"
    other.mkdir()
    assert hosts.driver("b", other).disk_store is None
    assert not hosts.driver("b", other).keeps_disks
    assert not hosts.driver("b", other).keeps_shelved
    give_id(other)
    first = folder_id(other)
    give_id(other)
    assert folder_id(other) == first != hosts.a.disk_store

    async def unmounted() -> None:
        (hosts.folder / ".roost-folder").unlink()
        hosts.a.guests()
        await asyncio.sleep(0)
        await hosts.a.recover([])
        assert hosts.a.disk_store is None

    asyncio.run(unmounted())


def test_an_attempt_that_ends_without_a_guest_leaves_no_disk_and_touches_none_of_another(
    hosts: Hosts,
) -> None:
    async def run() -> None:
        await hosts.a.prepare(attempt(1, finds=False))
        await built(hosts.b, attempt(2, finds=False))
        [of_a, of_b] = hosts.disks
        assert (of_a.name, of_b.name) == ("disk-1.a", "disk-2.b")
        # The first one was cut off, and ends late.
        await hosts.a.destroy("i")
        assert hosts.disks == [of_b]

        await hosts.b.destroy("i")
        await DriverService(hosts.b).remove_disks("i")
        await hosts.a.prepare(attempt(3, finds=False))
        await hosts.a.destroy("i")
        assert [*hosts.folder.iterdir()] == [hosts.folder / ".roost-folder"]

    asyncio.run(run())


def test_an_agent_that_was_killed_before_it_noted_the_disk_of_a_running_guest_notes_it_later(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        def killed(*_: object) -> None:
            raise OSError("killed")

        with monkeypatch.context() as without:
            without.setattr("roost.agent.drivers.libvirt.shared_disks.SharedDisks.keep", killed)
            with pytest.raises(BuildFailed):
                await built(hosts.a, attempt(1, finds=False))
        with pytest.raises(BuildFailed) as failed:
            await hosts.b.prepare(attempt(2, finds=True))
        assert failed.value.code == NO_DISK
        await hosts.driver("a").recover([])
        await hosts.b.prepare(attempt(2, finds=True))

    asyncio.run(run())


def test_a_disk_grows_with_the_flavor_once_its_source_has_stopped_and_does_not_shrink(hosts: Hosts) -> None:
    async def run() -> None:
        disk = await built_and_written(hosts)
        larger = attempt(2, finds=True, flavor=Flavor("g", 1, 64, 2))
        await hosts.b.prepare(larger)
        assert disk.stat().st_size == 1024**3
        await hosts.a.stop("i")
        await hosts.b.start(larger)
        assert disk.stat().st_size == 2 * 1024**3
        assert has_written(disk)
        with pytest.raises(BuildFailed, match="has 2 GiB and does not shrink") as failed:
            await hosts.a.prepare(attempt(3, finds=True))
        assert (failed.value.code, failed.value.retryable) == (DISK_FAILED, False)

    asyncio.run(run())


def test_the_disk_of_an_instance_that_stays_stopped_is_kept_and_grows_when_it_is_started(
    hosts: Hosts,
) -> None:
    async def run() -> None:
        await hosts.a.prepare(attempt(1, finds=False))
        await hosts.a.stop("i")
        await hosts.a.destroy("i")
        larger = attempt(2, finds=True, flavor=Flavor("g", 1, 64, 2))
        await hosts.b.prepare(larger)
        await hosts.b.stop("i")
        [disk] = hosts.disks
        assert disk.stat().st_size == 1024**3
        await hosts.b.start_again(larger)
        assert disk.stat().st_size == 2 * 1024**3

    asyncio.run(run())


def test_a_host_whose_folder_is_its_own_makes_no_disk_for_a_guest_that_has_one(
    hosts: Hosts, tmp_path: Path
) -> None:
    async def run() -> None:
        options = DriverOptions(disks=DiskOptions(tmp_path / "own"), refresh_seconds=0.0)
        service = DriverService(LibvirtDriver("b", options, hosts.connections["b"]))
        with pytest.raises(BuildFailed, match="does not keep the disks"):
            await service.prepare(attempt(2, finds=True))

    asyncio.run(run())


def test_an_evacuated_guest_without_its_disk_gets_a_new_one_and_the_old_one_stays(hosts: Hosts) -> None:
    async def run() -> None:
        disk = await built_and_written(hosts)
        await built(hosts.b, attempt(2, finds=False))
        assert [each.name for each in hosts.disks] == ["disk-1.a", "disk-2.b"]
        assert has_written(disk)
        # The host that was said to be dead is back, and destroys what it had.
        await hosts.a.destroy("i")
        assert [each.name for each in hosts.disks] == ["disk-2.b"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("extra", "reason"), [({"hw:tpm_version": "2.0"}, "a TPM"), ({"os:secure_boot": "required"}, "UEFI")]
)
def test_a_guest_with_state_beside_its_disk_does_not_move(
    hosts: Hosts, extra: dict[str, str], reason: str
) -> None:
    async def run() -> None:
        await built_and_written(hosts)
        with pytest.raises(BuildFailed, match=reason) as failed:
            await hosts.b.prepare(attempt(2, finds=True, flavor=Flavor("f", 1, 64, 1, extra_specs=extra)))
        assert not failed.value.retryable

    asyncio.run(run())

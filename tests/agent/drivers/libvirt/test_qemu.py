"""The driver on QEMU without KVM: a guest of a boot sector, from its image to its deletion."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.agent.drivers.libvirt.connection import LibvirtConnection
from roost.agent.drivers.libvirt.driver import LibvirtDriver
from roost.agent.drivers.libvirt.guest_options import DriverOptions
from roost.agent.drivers.libvirt.images import DiskOptions
from roost.agent.drivers.libvirt.inventory import CpuSets
from roost.agent.errors import BuildFailed, HypervisorAway
from roost.agent.provider_tree import ProviderTree
from roost.model.assignment import AssignedCell, Assignment
from roost.model.instance import Instance
from roost.model.spec import Flavor, Image
from support.libvirt_hosts import instance_of, needs_libvirt
from support.waiting import patience

needs_libvirt()

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        os.getuid() != 0, reason="libvirt runs QEMU as another user: only root may say as which"
    ),
    pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="QEMU is not installed"),
]

SAYS = b"roost was here"
BOOT_SECTOR = (
    bytes.fromhex("31c08ed8")  # the data segment is 0
    + bytes.fromhex("be167c")  # from the text on, which follows the code:
    + bytes.fromhex("ac84c07406baf803eeebf5")  # each character up to a zero goes to the serial line
    + bytes.fromhex("faf4ebfc")  # halt for ever
    + SAYS
    + bytes(1)
).ljust(510, b"\0") + b"\x55\xaa"
CONF = """
stdio_handler = "file"
namespaces = []
cgroup_controllers = []
security_driver = "none"
user = "root"
group = "root"
remember_owner = 0
"""
UUID = "7f0c6a0e-5d7e-4f0b-9f0f-0d9a1d5f9a11"
FLAVOR = Flavor("tiny", 1, 32)
IMAGE = Image("boots", "raw")


@pytest.fixture(scope="module")
def qemu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LibvirtConnection]:
    """QEMU with all its state in a folder, as long as the module is tested."""
    root = tmp_path_factory.mktemp("q")
    (root / "etc").mkdir()
    (root / "etc" / "qemu.conf").write_text(CONF)
    connection = LibvirtConnection(f"qemu:///embed?root={root}", 60.0)
    try:
        connection.call_now(lambda opened: opened.getInfo())
    except HypervisorAway as error:
        pytest.skip(f"libvirt cannot run QEMU here: {error}")
    yield connection
    connection.close()


def driver(connection: LibvirtConnection, folder: Path, **options: object) -> LibvirtDriver:
    images = folder / "images"
    images.mkdir(exist_ok=True)
    (images / "boots").write_bytes(BOOT_SECTOR.ljust(2**20, b"\0"))
    facts: dict[str, object] = {
        "disks": DiskOptions(folder / "instances", images),
        "virt_type": "qemu",
        "refresh_seconds": 0.0,
    }
    return LibvirtDriver("a", DriverOptions(**{**facts, **options}), connection)  # type: ignore[arg-type]


async def until_it_speaks(folder: Path, wanted: Instance) -> None:
    console = folder / "instances" / f"roost-{wanted.uuid}" / "console.log"
    async with asyncio.timeout(patience(60)):
        while SAYS not in console.read_bytes():
            await asyncio.sleep(0.05)


def test_the_host_reports_what_its_guests_can_have(qemu: LibvirtConnection, tmp_path: Path) -> None:
    tree = ProviderTree()
    tree.put_root("a", UUID)
    there = driver(qemu, tmp_path)

    async def run() -> None:
        there.update_provider_tree(tree, "a")

    asyncio.run(run())
    assert tree.data("a").traits >= {
        "COMPUTE_ARCH_X86_64",
        "COMPUTE_FIRMWARE_BIOS",
        "COMPUTE_IMAGE_TYPE_QCOW2",
        "COMPUTE_NET_VIF_MODEL_VIRTIO",
        "COMPUTE_STORAGE_BUS_VIRTIO",
        "COMPUTE_GRAPHICS_MODEL_VGA",
        # A flag that is in each model of a CPU with 64 bits, so that libvirt does not name it.
        "HW_CPU_X86_SSE2",
    }


@pytest.mark.parametrize("kind", ["qcow2", "raw"])
def test_a_guest_boots_its_image_and_is_gone_after(
    qemu: LibvirtConnection, tmp_path: Path, kind: str
) -> None:
    async def run() -> None:
        disks = DiskOptions(tmp_path / "instances", tmp_path / "images", kind)
        there = driver(qemu, tmp_path, disks=disks)
        wanted = instance_of(UUID, FLAVOR, image=IMAGE)
        await there.prepare(wanted)
        assert there.guests() == {}
        await there.start(wanted)
        try:
            assert there.guests() == {UUID: 1}
            await until_it_speaks(tmp_path, wanted)
        finally:
            await there.destroy(UUID)
        await there.recover(())
        assert there.guests() == {}
        assert list((tmp_path / "instances").iterdir()) == []

    asyncio.run(run())


def test_a_guest_is_pinned_as_it_was_assigned(qemu: LibvirtConnection, tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    assignment = Assignment("node", (AssignedCell(0, 0, pinned=((0, cpu),), memory_mb=32, page_size_kb=4),))

    async def run() -> None:
        there = driver(qemu, tmp_path, cpu_sets=CpuSets(dedicated=frozenset({cpu})))
        wanted = instance_of(UUID, FLAVOR, image=IMAGE, assignment=assignment)
        await there.prepare(wanted)
        await there.start(wanted)
        try:
            await until_it_speaks(tmp_path, wanted)
            pins = qemu.call_now(lambda opened: opened.lookupByName(f"roost-{UUID}").vcpuPinInfo())
            assert [number for number, on in enumerate(pins[0]) if on] == [cpu]
            other = instance_of("other", FLAVOR, image=IMAGE, assignment=assignment)
            with pytest.raises(BuildFailed, match=f"host CPU {cpu}"):
                await there.prepare(other)
        finally:
            await there.destroy(UUID)

    asyncio.run(run())


def test_a_machine_that_qemu_does_not_have_is_told_at_the_start(
    qemu: LibvirtConnection, tmp_path: Path
) -> None:
    with pytest.raises(BuildFailed, match="no-such-machine"):
        driver(qemu, tmp_path, machine="no-such-machine")


def test_a_guest_that_qemu_cannot_start_fails_its_build(qemu: LibvirtConnection, tmp_path: Path) -> None:
    async def run() -> None:
        there = driver(qemu, tmp_path)
        wanted = instance_of(UUID, FLAVOR, image=IMAGE)
        await there.prepare(wanted)
        (tmp_path / "images" / "boots").unlink()
        with pytest.raises(BuildFailed, match="boots") as failed:
            await there.start(wanted)
        assert (failed.value.retryable, there.guests()) == (True, {})
        await there.destroy(UUID)

    asyncio.run(run())

"""Disks are made from the images of a folder, and of nothing else."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from roost.agent.drivers.libvirt.images import Disk, DiskOptions, make_disk, remove_folder
from roost.agent.errors import BuildFailed
from roost.model.spec import Flavor, Image, RequestSpec

MIB = 2**20

with_tool = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")


def wanted(image: Image | None, disk_gb: int = 0, *, volume_backed: bool = False) -> RequestSpec:
    flavor = Flavor("f", 1, 64, disk_gb)
    return RequestSpec(project_id="p", user_id="u", flavor=flavor, image=image, volume_backed=volume_backed)


def options(folder: Path, kind: str = "qcow2") -> DiskOptions:
    images = folder / "images"
    images.mkdir(exist_ok=True)
    (images / "plain").write_bytes(b"x" * MIB)
    return DiskOptions(folder / "instances", images, kind)


def made(given: DiskOptions, spec: RequestSpec) -> Disk | None:
    return asyncio.run(make_disk(given, "roost-i", spec))


def info(disk: Disk) -> dict[str, object]:
    command = ("qemu-img", "info", "-f", disk.format, "--output=json", str(disk.path))
    told: dict[str, object] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return told


def test_a_guest_without_image_and_disk_has_none(tmp_path: Path) -> None:
    assert made(options(tmp_path), wanted(None)) is None


def test_an_empty_disk_has_the_size_of_the_flavor_and_goes_with_the_folder(tmp_path: Path) -> None:
    given = options(tmp_path)
    disk = made(given, wanted(None, 2))
    assert disk == Disk(tmp_path / "instances" / "roost-i" / "disk", "raw", 2 * 1024**3)
    assert disk is not None
    assert disk.path.stat().st_size == 2 * 1024**3
    remove_folder(given, "roost-i")
    remove_folder(given, "roost-i")
    assert list((tmp_path / "instances").iterdir()) == []


@with_tool
def test_a_layer_over_an_image_and_a_copy_of_it_have_the_size_of_the_flavor(tmp_path: Path) -> None:
    for kind, backing in (("qcow2", str(tmp_path / "images" / "plain")), ("raw", None)):
        disk = made(options(tmp_path, kind), wanted(Image("plain", "raw"), 1))
        assert disk is not None
        told = info(disk)
        assert (disk.format, told["virtual-size"], told.get("backing-filename")) == (kind, 1024**3, backing)


@with_tool
def test_a_flavor_without_a_disk_takes_that_of_the_image(tmp_path: Path) -> None:
    disk = made(options(tmp_path), wanted(Image("plain")))
    assert disk is not None
    assert info(disk)["virtual-size"] == MIB


@with_tool
def test_an_image_that_reads_other_files_is_refused_for_good(tmp_path: Path) -> None:
    given = options(tmp_path)
    layer = tmp_path / "images" / "layer"
    command = ("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", "/etc/hostname", str(layer))
    subprocess.run(command, check=True)
    with pytest.raises(BuildFailed, match="made of other files") as failed:
        made(given, wanted(Image("layer", "qcow2"), 1))
    assert (failed.value.code, failed.value.retryable) == ("ImageUnacceptable", False)


@with_tool
def test_an_image_in_another_format_than_it_says_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="qemu-img info"):
        made(options(tmp_path), wanted(Image("plain", "qcow2")))


@pytest.mark.parametrize("name", ["missing", "../images/plain", "..", "/etc/hostname"])
def test_an_image_that_is_not_in_the_folder_is_looked_for_on_another_host(tmp_path: Path, name: str) -> None:
    with pytest.raises(BuildFailed) as failed:
        made(options(tmp_path), wanted(Image(name, "raw")))
    assert (failed.value.code, failed.value.retryable) == ("ImageNotFound", True)


def test_volumes_and_formats_that_the_host_does_not_know_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="no volumes"):
        made(options(tmp_path), wanted(None, volume_backed=True))
    with pytest.raises(BuildFailed, match="image plain is vmdk"):
        made(options(tmp_path), wanted(Image("plain", "vmdk")))

"""The disks of guests, made by qemu-img from the images in a folder."""

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

import msgspec

from roost.agent.errors import BuildFailed
from roost.model.spec import RequestSpec

NO_IMAGE: Final = "ImageNotFound"
BAD_IMAGE: Final = "ImageUnacceptable"
DISK_FAILED: Final = "DiskFailed"
"""The codes of builds that fail for their disk."""

_FORMATS: Final = ("raw", "qcow2")
_GIB: Final = 1024**3


class DiskOptions(msgspec.Struct, frozen=True):
    """Folders and format of disks.

    ``instances``: the folder with a folder for each guest. ``images``: the folder of images, by their ids;
    None: there are no images. ``kind``: ``qcow2`` for layers over the image, ``raw`` for whole copies.
    ``shared``: all hosts of the guests have the folder ``instances``.
    """

    instances: Path
    images: Path | None = None
    kind: str = "qcow2"
    shared: bool = False


class Disk(msgspec.Struct, frozen=True):
    """A disk that was made: its format, its size in bytes, and the file that it is a layer over."""

    path: Path
    format: str
    size: int
    over: Path | None = None


async def make_disk(options: DiskOptions, name: str, spec: RequestSpec, file: str = "disk") -> Disk | None:
    """Make the disk of a guest in the folder of its name; None for a guest without one.

    ``file``: the name of the disk's file, which is replaced if it is there.

    Raises: `BuildFailed`.
    """
    if spec.volume_backed:
        raise BuildFailed("the host attaches no volumes", BAD_IMAGE)
    folder, image = options.instances / name, spec.image
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildFailed(f"the folder {folder} cannot be made: {error}", DISK_FAILED) from error
    size = spec.flavor.disk_gb * _GIB
    if image is None or image.id is None:
        if not size:
            return None
        # An empty disk needs no tool.
        path = folder / file
        try:
            with path.open("wb") as opened:
                opened.truncate(size)
        except OSError as error:
            raise BuildFailed(f"the disk {path} cannot be made: {error}", DISK_FAILED) from error
        return Disk(path, "raw", size)
    given = image.disk_format or "raw"
    if given not in _FORMATS:
        raise BuildFailed(f"image {image.id} is {given}, not {' or '.join(_FORMATS)}", BAD_IMAGE, False)
    source = _file_of(options, image.id)
    least = await _checked_size(source, given)
    if size and size < least:
        raise BuildFailed(f"image {image.id} needs {-(-least // _GIB)} GiB of disk", BAD_IMAGE, False)
    path = folder / file
    if options.kind == "qcow2":
        await _run(
            "create", "-q", "-f", "qcow2", "-F", given, "-b", str(source), str(path), str(size or least)
        )
    else:
        await _run("convert", "-q", "-f", given, "-O", "raw", str(source), str(path))
        if size > least:
            await _run("resize", "-q", "-f", "raw", str(path), str(size))
    return Disk(path, options.kind, size or least, source if options.kind == "qcow2" else None)


async def grow_disk(disk: Disk, size: int) -> None:
    """Make a disk that no guest uses larger. ``size``: bytes. Raises `BuildFailed`."""
    if disk.format == "raw":
        try:
            os.truncate(disk.path, size)
        except OSError as error:
            raise BuildFailed(f"the disk {disk.path} cannot grow: {error}", DISK_FAILED) from error
    else:
        await _run("resize", "-q", "-f", disk.format, str(disk.path), str(size))


def remove_folder(options: DiskOptions, name: str) -> None:
    """Remove the folder of a guest, if it exists. Raises OSError."""
    folder = options.instances / name
    if folder.exists():
        shutil.rmtree(folder)


def _plain_file(folder: Path, name: str) -> Path | None:
    """Return the file of a name in a folder; None if it does not exist or is outside of the folder."""
    path = folder / name
    if os.sep in name or name in ("", ".", "..") or not path.is_file():
        return None
    return path


def _file_of(options: DiskOptions, image: str) -> Path:
    if options.images is None:
        raise BuildFailed("the host has no folder of images", NO_IMAGE)
    path = _plain_file(options.images, image)
    if path is None:
        raise BuildFailed(f"there is no image {image} on the host", NO_IMAGE)
    return path.absolute()


async def _checked_size(path: Path, given: str) -> int:
    """Return the size of an image's disk in bytes. Raises `BuildFailed` for one that reads other files."""
    told: dict[str, Any] = json.loads(await _run("info", "-f", given, "--output=json", str(path)))
    # The image's author could name any file of the host, and the guest would read it.
    if told.get("backing-filename") or told.get("format-specific", {}).get("data", {}).get("data-file"):
        raise BuildFailed(f"image {path.name} is made of other files", BAD_IMAGE, False)
    return int(told["virtual-size"])


async def _run(*arguments: str) -> bytes:
    """Run qemu-img to its end. Raises `BuildFailed`."""
    try:
        process = await asyncio.create_subprocess_exec(
            "qemu-img",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise BuildFailed(f"qemu-img cannot be run: {error}", DISK_FAILED) from error
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        text = err.decode(errors="replace").strip()
        raise BuildFailed(f"qemu-img {arguments[0]}: {text}", DISK_FAILED)
    return out

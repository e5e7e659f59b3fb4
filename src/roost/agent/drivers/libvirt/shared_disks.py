"""The disks of instances in a folder that hosts share.

A disk belongs to its instance, and a domain to an attempt on a host. Each attempt that makes a disk makes a
file of its own (``disk-ATTEMPT.HOST``), so that a host which was cut off overwrites nothing. The file
``disk.json`` names the one that the instance has: it is written once the guest of the attempt runs, which the
cell lets happen on one host at a time. A host removes only what it has made and the instance does not have;
the whole folder goes with the instance.

The folder has an id. Guests move between hosts that read the same one, and a target that does not find the
disk of an instance fails before the source has stopped: two folders that only look like one lose nothing.
"""

import asyncio
import os
import re
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from roost.agent.drivers.libvirt.images import DISK_FAILED, Disk, DiskOptions, grow_disk, make_disk
from roost.agent.errors import BuildFailed
from roost.model.instance import Instance
from roost.model.spec import RequestSpec
from roost.process.durable_file import replace_file

NO_DISK: Final = "DiskNotFound"
"""The code of attempts at an instance whose disk is not in the folder of the host."""

_ID_FILE: Final = ".roost-folder"
_ID: Final = re.compile(r"[0-9a-f]{32}")
_RECORD: Final = "disk.json"
_GIB: Final = 1024**3


class _Record(msgspec.Struct, frozen=True):
    """The disk of an instance: its file, format, size in bytes, and the image that it is a layer over.

    ``file`` is None for an instance without a disk.
    """

    file: str | None
    format: str = "raw"
    size: int = 0
    over: str | None = None


def folder_id(folder: Path) -> str | None:
    """Return the id of a folder of disks; None if it has none, or cannot be read."""
    try:
        text = (folder / _ID_FILE).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
    return text if _ID.fullmatch(text) else None


def give_id(folder: Path) -> None:
    """Give a folder an id, unless it has one: one of several hosts does it. Raises OSError."""
    path = folder / _ID_FILE
    if path.exists():
        return
    fresh = folder / f"{_ID_FILE}.{uuid.uuid4().hex}"
    try:
        fresh.write_text(f"{uuid.uuid4().hex}\n")
        os.link(fresh, path)
    except FileExistsError:
        return
    finally:
        fresh.unlink(missing_ok=True)


class SharedDisks:
    """The disks of a host's guests in the folder that it shares with others."""

    def __init__(self, options: DiskOptions, host: str) -> None:
        self._options = options
        self._host = host
        self._mark = quote(host, safe="")

    async def prepare(self, name: str, instance: Instance, spec: RequestSpec) -> Disk | None:
        """Return the disk of an attempt, None if it has none: a new one, or that which the instance has.

        Raises `BuildFailed`.
        """
        if instance.finds_disks:
            return await asyncio.to_thread(self._found, name, spec)
        disk = await make_disk(self._options, name, spec, f"disk-{instance.attempt}.{self._mark}")
        await asyncio.to_thread(self._note, name, instance.attempt, disk)
        return disk

    async def grow(self, name: str, instance: Instance, spec: RequestSpec) -> None:
        """Make the disk that an instance has, if any, as large as its flavor says; no guest uses it now.

        Raises `BuildFailed`.
        """
        size = spec.flavor.disk_gb * _GIB
        disk = await asyncio.to_thread(self._recorded, name)
        if disk is not None and disk.size < size:
            await grow_disk(disk, size)
            grown = msgspec.structs.replace(disk, size=size)
            await asyncio.to_thread(self._note, name, instance.attempt, grown)

    def keep(self, name: str, attempt: int) -> None:
        """Note that the guest of an attempt was started, or is to stay stopped: the instance has its disk.

        Raises OSError.
        """
        folder = self._options.instances / name
        with suppress(FileNotFoundError):
            # If it is gone, the disk was there before, and is as it was; or this was done already.
            (folder / f"next-{attempt}.{self._mark}").replace(folder / _RECORD)
        self.leave(name)

    def leave(self, name: str) -> None:
        """Remove the disks that this host has made and the instance does not have. Raises OSError."""
        folder = self._options.instances / name
        try:
            kept = msgspec.json.decode((folder / _RECORD).read_bytes(), type=_Record).file
        except FileNotFoundError:
            kept = None
        except msgspec.MsgspecError as error:
            raise OSError(f"{folder / _RECORD} cannot be read: {error}") from error
        for path in [*folder.glob("disk-*"), *folder.glob("next-*")]:
            if path.name != kept and path.name.partition(".")[2] == self._mark:
                path.unlink(missing_ok=True)
        if kept is None and folder.exists() and not any(folder.iterdir()):
            folder.rmdir()

    def remove(self, name: str) -> None:
        """Remove the folder of an instance that has ended. Raises OSError."""
        folder = self._options.instances / name
        if folder.exists():
            shutil.rmtree(folder)

    def _note(self, name: str, attempt: int, disk: Disk | None) -> None:
        """Write the record that the instance gets when the guest runs. Raises `BuildFailed`."""
        record = _Record(None)
        if disk is not None:
            over = None if disk.over is None else str(disk.over)
            record = _Record(disk.path.name, disk.format, disk.size, over)
        path = self._options.instances / name / f"next-{attempt}.{self._mark}"
        try:
            replace_file(path, msgspec.json.encode(record))
        except OSError as error:
            raise BuildFailed(f"{path} cannot be written: {error}", DISK_FAILED) from error

    def _recorded(self, name: str) -> Disk | None:
        """Return the disk that an instance has; None if it has none, or no record. Raises `BuildFailed`."""
        path = self._options.instances / name / _RECORD
        try:
            record = msgspec.json.decode(path.read_bytes(), type=_Record)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise BuildFailed(f"{path} cannot be read: {error}", DISK_FAILED) from error
        if record.file is None:
            return None
        over = None if record.over is None else Path(record.over)
        return Disk(path.with_name(record.file), record.format, record.size, over)

    def _found(self, name: str, spec: RequestSpec) -> Disk | None:
        disk = self._recorded(name)
        path = self._options.instances / name / _RECORD
        if disk is None and not path.exists():
            raise BuildFailed(
                f"host {self._host} does not find the disk of the instance in {path.parent}", NO_DISK
            )
        if disk is None:
            return None
        for needed in (disk.path, disk.over):
            if needed is not None and not needed.is_file():
                raise BuildFailed(f"host {self._host} has no file {needed}", NO_DISK)
        if 0 < spec.flavor.disk_gb * _GIB < disk.size:
            gib = -(-disk.size // _GIB)
            reason = f"the disk of the instance has {gib} GiB and does not shrink"
            raise BuildFailed(reason, DISK_FAILED, False)
        return disk

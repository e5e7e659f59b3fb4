"""A file of the index: one block, as arrays that are mapped into memory, with a checksum.

    magic        8 bytes, which name the version of the format
    length       uint32, of the header
    header       MessagePack of `BlockHeader`
    arrays       each at a multiple of 8 bytes from the begin of the file
    checksum     uint32, CRC-32 of all before it

All numbers are little-endian.
"""

import mmap
import struct
import zlib
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from roost.dashboard.past.index_block import IndexBlock

_MAGIC: Final = b"roostpa1"
_LENGTH: Final = struct.Struct("<I")
_ARRAYS: Final = tuple(name for name in IndexBlock._fields if name not in ("first", "classes"))
_ALIGNMENT: Final = 8
_CHECKED_AT_ONCE: Final = 1024 * 1024


class DamagedFile(Exception):
    """A file of the index is not what was written. The text says why."""


class StoredArray(msgspec.Struct, frozen=True):
    """An array of a file: its type as numpy describes it, and its length."""

    type: str | list[tuple[str, str]]
    length: int


class BlockHeader(msgspec.Struct, frozen=True):
    """The header of a file.

    ``history``: the identity and incarnation of the ledger's database. ``token``: of the last commit.
    """

    history: str
    token: str
    first: int
    classes: tuple[str, ...]
    arrays: tuple[StoredArray, ...]


class StoredBlock(msgspec.Struct, frozen=True):
    """A block that is in a file. ``size``: bytes of the file."""

    block: IndexBlock
    history: str
    token: str
    size: int


def encoded(block: IndexBlock, history: str, token: str) -> bytes:
    """Return the content of a file."""
    arrays = [getattr(block, name) for name in _ARRAYS]
    stored = tuple(StoredArray(_type_of(each.dtype), len(each)) for each in arrays)
    header = msgspec.msgpack.encode(BlockHeader(history, token, block.first, block.classes, stored))
    content = bytearray(_MAGIC + _LENGTH.pack(len(header)) + header)
    for each in arrays:
        content += bytes(-len(content) % _ALIGNMENT)
        content += each.tobytes()
    content += _LENGTH.pack(zlib.crc32(content))
    return bytes(content)


def read_block(path: Path) -> StoredBlock:
    """Map a file into memory, and check it. Raises: `DamagedFile`, `OSError`."""
    with path.open("rb") as file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file
            raise DamagedFile("it is empty") from None
    size = len(content)
    if size < len(_MAGIC) + 2 * _LENGTH.size or content[: len(_MAGIC)] != _MAGIC:
        raise DamagedFile("it is of another format")
    checksum = 0
    view = memoryview(content)
    end = size - _LENGTH.size
    for at in range(0, end, _CHECKED_AT_ONCE):
        checksum = zlib.crc32(view[at : min(at + _CHECKED_AT_ONCE, end)], checksum)
    if checksum != _LENGTH.unpack_from(content, end)[0]:
        raise DamagedFile("its checksum is wrong")
    try:
        header, arrays = _decoded(content)
    except (ValueError, TypeError, msgspec.MsgspecError, struct.error) as error:
        raise DamagedFile(f"it cannot be read: {error}") from None
    block = IndexBlock(first=header.first, classes=header.classes, **arrays)
    return StoredBlock(block, header.history, header.token, size)


def _decoded(content: mmap.mmap) -> tuple[BlockHeader, dict[str, Any]]:
    at = len(_MAGIC)
    (length,) = _LENGTH.unpack_from(content, at)
    at += _LENGTH.size
    header = msgspec.msgpack.decode(content[at : at + length], type=BlockHeader)
    at += length
    arrays = {}
    for name, stored in zip(_ARRAYS, header.arrays, strict=True):
        at += -at % _ALIGNMENT
        dtype = np.dtype(stored.type if isinstance(stored.type, str) else [*map(tuple, stored.type)])
        arrays[name] = np.frombuffer(content, dtype, stored.length, at)
        at += dtype.itemsize * stored.length
    return header, arrays


def _type_of(dtype: np.dtype[Any]) -> str | list[tuple[str, str]]:
    return dtype.str if dtype.names is None else [(name, dtype[name].str) for name in dtype.names]

"""The files that pages load: style, scripts, and those of npm packages in ``vendor``.

Each address has the digest of the file, so that browsers keep a file for ever and never an old one.
"""

import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from roost.dashboard.addresses import ASSETS

_FOLDER: Final = Path(__file__).parent

_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


class AssetFile(NamedTuple):
    """A file: its bytes as they are and compressed, its media type, and the digest of its bytes."""

    content: bytes
    compressed: bytes
    media_type: str
    digest: str


def asset(name: str) -> str:
    """Return the address of a file. Raises KeyError: there is no such file."""
    return f"{ASSETS}{name}?v={asset_files()[name].digest}"


@cache
def asset_files() -> dict[str, AssetFile]:
    """Return all files by their names below the folder."""
    found = {}
    for path in sorted(_FOLDER.rglob("*")):
        if path.suffix in _TYPES and path.is_file():
            content = path.read_bytes()
            found[path.relative_to(_FOLDER).as_posix()] = AssetFile(
                content,
                gzip.compress(content, 9, mtime=0),
                _TYPES[path.suffix],
                hashlib.sha256(content).hexdigest()[:16],
            )
    return found

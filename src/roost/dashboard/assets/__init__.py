"""The files that pages load: style, scripts, and those of npm packages in ``vendor``.

Each address has the digest of the file, so that browsers keep a file for ever and never an old one. Scripts
import each other by such addresses, too: they are written into the imports when the files are read.
"""

import gzip
import hashlib
import re
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


_IMPORT: Final = re.compile(rb'(?<=\bfrom "\./)[\w-]+\.js(?=")|(?<=\bnew URL\("\./)[\w-]+\.js(?=")')
"""The name of a script in an import of another script, or in the address of a worker."""


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
    paths = {path.relative_to(_FOLDER).as_posix(): path for path in sorted(_FOLDER.rglob("*"))}
    found: dict[str, AssetFile] = {}

    def read(name: str) -> AssetFile:
        """Read a file after the scripts that it imports, whose digests are part of its own."""
        if name not in found:
            content = paths[name].read_bytes()
            if name.endswith(".js") and "/" not in name:
                content = _IMPORT.sub(
                    lambda match: match[0] + b"?v=" + read(match[0].decode()).digest.encode(), content
                )
            found[name] = AssetFile(
                content,
                gzip.compress(content, 9, mtime=0),
                _TYPES[paths[name].suffix],
                hashlib.sha256(content).hexdigest()[:16],
            )
        return found[name]

    for name, path in paths.items():
        if path.suffix in _TYPES and path.is_file():
            read(name)
    return found

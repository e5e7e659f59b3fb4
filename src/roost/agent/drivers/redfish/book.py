"""The instance of each node, kept in files, as a BMC cannot keep it.

A node without an entry is free, or used by somebody else. A file is durable before the BMC gets a request
that depends on it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from roost.agent.errors import StateUnusable
from roost.process.durable_file import replace_file

Phase = Literal["building", "starting", "running", "stopped", "ending", "cleaning", "uncleaned"]

CARRYING: tuple[Phase, ...] = ("building", "starting", "running", "stopped", "ending")
"""Phases in which the node has an instance."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The use of a node: an attempt at an instance, or the cleaning after it.

    From ``starting`` on the machine may have been switched on for it. ``reason``: why it is ``uncleaned``.
    """

    phase: Phase
    instance: str
    attempt: int
    reason: str = ""


class Book:
    """A folder with one file for each node that is taken, named by the node's uuid."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if need be, and read it. Raises `StateUnusable`."""
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._entries = {
                path.stem: msgspec.json.decode(path.read_bytes(), type=Entry)
                # A new version of a file begins with a dot until it is whole.
                for path in folder.glob("[!.]*.json")
            }
        except (OSError, msgspec.MsgspecError) as error:
            raise StateUnusable(f"the book of nodes {folder} cannot be used: {error}") from error

    def __getitem__(self, node: str) -> Entry | None:
        return self._entries.get(node)

    @property
    def entries(self) -> Mapping[str, Entry]:
        """All entries by node."""
        return self._entries

    def nodes_of(self, instance: str) -> list[str]:
        """Return the nodes that have an instance, by any attempt."""
        return [
            node
            for node, entry in self._entries.items()
            if entry.instance == instance and entry.phase in CARRYING
        ]

    def put(self, node: str, entry: Entry) -> None:
        """Keep an entry. Raises `StateUnusable`; the entry is unchanged then."""
        try:
            replace_file(self._path(node), msgspec.json.encode(entry))
        except OSError as error:
            raise StateUnusable(f"{self._path(node)} cannot be written: {error}") from error
        self._entries[node] = entry

    def remove(self, node: str) -> None:
        """Remove the entry of a node, which is free then. Raises `StateUnusable`."""
        try:
            self._path(node).unlink(missing_ok=True)
        except OSError as error:
            raise StateUnusable(f"{self._path(node)} cannot be removed: {error}") from error
        self._entries.pop(node, None)

    def _path(self, node: str) -> Path:
        return self._folder / f"{node}.json"

"""What an operator says to an agent of bare metal, and what it tells, by files in its state directory.

The agent looks there each time that it looks at the power of its nodes; it need not run when a word is said.
"""

from pathlib import Path
from typing import Literal

import msgspec

from roost.model.errors import OperatorError
from roost.process.durable_file import replace_file

FOLDER = "redfish"
"""The folder of the driver in the state directory of the agent."""

Word = Literal["clean", "release"]
"""Clean a node once more, or offer one that was not cleaned as it is."""

_WORDS: tuple[Word, ...] = ("clean", "release")
_TOLD = "nodes.json"
_SAID = "said"


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node as its agent tells of it. ``phase``: as in the book, or ``free`` or ``reserved``.

    ``why``: what stands against it; empty for a free one. Amounts are the BMC's, or those of the file.
    """

    uuid: str
    name: str
    resource_class: str
    phase: str
    why: str = ""
    on: bool | None = None
    instance: str | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    disk_gb: int | None = None


class Told(msgspec.Struct, frozen=True):
    """All nodes of an agent."""

    nodes: tuple[NodeStatus, ...]


def tell(folder: Path, told: Told) -> None:
    """Replace what was told. Raises OSError."""
    replace_file(folder / _TOLD, msgspec.json.encode(told))


def read_told(state: Path) -> Told:
    """What the agent of a state directory has told last. Raises `OperatorError`."""
    path = state / FOLDER / _TOLD
    try:
        return msgspec.json.decode(path.read_bytes(), type=Told)
    except (OSError, msgspec.MsgspecError) as error:
        raise OperatorError(f"no nodes are told in {path}: {error}") from error


def say(state: Path, node: str, word: Word) -> NodeStatus:
    """Say a word about a node, by its name or uuid, that was not cleaned. Raises `OperatorError`."""
    found = [each for each in read_told(state).nodes if node in (each.name, each.uuid)]
    if not found:
        raise OperatorError(f"the agent of {state} has no node {node}")
    if found[0].phase != "uncleaned":
        raise OperatorError(f"node {node} is {found[0].phase}: there is nothing to {word}")
    folder = state / FOLDER / _SAID
    try:
        folder.mkdir(exist_ok=True, mode=0o700)
        replace_file(folder / f"{found[0].uuid}.{word}", b"")
    except OSError as error:
        raise OperatorError(f"{folder} cannot be written: {error}") from error
    return found[0]


def take_words(folder: Path) -> list[tuple[str, Word]]:
    """What was said about nodes, by uuid; it is said no longer then. Raises OSError."""
    said: list[tuple[str, Word]] = []
    for word in _WORDS:
        for path in sorted((folder / _SAID).glob(f"[!.]*.{word}")):
            said.append((path.stem, word))
            path.unlink()
    return said

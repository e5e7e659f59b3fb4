"""Node statuses of a bare metal agent and orders of operators to it, as files in its state directory.

The agent reads orders each time that it polls the power of its nodes; it need not run when one is given.
"""

from pathlib import Path
from typing import Literal

import msgspec

from roost.model.errors import OperatorError
from roost.process.durable_file import replace_file

FOLDER = "redfish"
"""The folder of the driver in the state directory of the agent."""

NodeOrder = Literal["clean", "release"]
"""Orders for an uncleaned node: clean it once more, or make it available as it is."""

_ORDERS: tuple[NodeOrder, ...] = ("clean", "release")
_STATUSES = "nodes.json"
_ORDER_FOLDER = "said"


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The status of a node. ``phase``: as in the book, or ``free`` or ``reserved``.

    ``why``: the reason why it is reserved; empty for a free one. Amounts are the BMC's, or those of the file.
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


class NodeStatuses(msgspec.Struct, frozen=True):
    """The status of all nodes of an agent."""

    nodes: tuple[NodeStatus, ...]


def write_statuses(folder: Path, statuses: NodeStatuses) -> None:
    """Replace the file of node statuses. Raises OSError."""
    replace_file(folder / _STATUSES, msgspec.json.encode(statuses))


def read_statuses(state: Path) -> NodeStatuses:
    """Read the last node statuses from an agent's state directory. Raises `OperatorError`."""
    path = state / FOLDER / _STATUSES
    try:
        return msgspec.json.decode(path.read_bytes(), type=NodeStatuses)
    except (OSError, msgspec.MsgspecError) as error:
        raise OperatorError(f"no nodes are told in {path}: {error}") from error


def send_order(state: Path, node: str, order: NodeOrder) -> NodeStatus:
    """Give an order for an uncleaned node, by the node's name or uuid. Raises `OperatorError`."""
    found = [each for each in read_statuses(state).nodes if node in (each.name, each.uuid)]
    if not found:
        raise OperatorError(f"the agent of {state} has no node {node}")
    if found[0].phase != "uncleaned":
        raise OperatorError(f"node {node} is {found[0].phase}: there is nothing to {order}")
    folder = state / FOLDER / _ORDER_FOLDER
    try:
        folder.mkdir(exist_ok=True, mode=0o700)
        replace_file(folder / f"{found[0].uuid}.{order}", b"")
    except OSError as error:
        raise OperatorError(f"{folder} cannot be written: {error}") from error
    return found[0]


def take_orders(folder: Path) -> list[tuple[str, NodeOrder]]:
    """Take the orders of operators, by the node's uuid, and remove their files. Raises OSError."""
    orders: list[tuple[str, NodeOrder]] = []
    for order in _ORDERS:
        for path in sorted((folder / _ORDER_FOLDER).glob(f"[!.]*.{order}")):
            orders.append((path.stem, order))
            path.unlink()
    return orders

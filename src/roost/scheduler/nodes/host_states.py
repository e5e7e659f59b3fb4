"""The states of hosts: up, disabled, or down."""

from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Rows
from roost.scheduler.nodes.table import NodeTable

HostState = Literal["up", "disabled", "down"]

UP: Final = 0
DISABLED: Final = 1
DOWN: Final = 2
STATES: Final[tuple[HostState, ...]] = ("up", "disabled", "down")
"""The states of hosts by number. A host that is down and disabled is down."""

States = npt.NDArray[np.uint8]


def host_states(table: NodeTable, nodes: Rows, oldest: float) -> States:
    """Return the state of each node, a number of `STATES`: uint8[len(nodes)].

    ``oldest``: a host whose last heartbeat is before this time (seconds since the epoch) is down.
    """
    alive = table.seen_since(oldest)[nodes]
    return np.where(alive, np.where(table.enabled[nodes], UP, DISABLED), DOWN).astype(np.uint8)

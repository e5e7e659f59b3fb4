"""The states of hosts: up, disabled, or down."""

from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Rows
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler.nodes.table import NodeTable

HostState = Literal["up", "disabled", "down"]

UP: Final = 0
DISABLED: Final = 1
DOWN: Final = 2
STATES: Final[tuple[HostState, ...]] = ("up", "disabled", "down")
"""The states of hosts by number. A host that is down and disabled is down."""

States = npt.NDArray[np.uint8]


def host_states(table: NodeTable, nodes: Rows, oldest: float, fleet: Fleet | None) -> States:
    """Return the state of each node, a number of `STATES`: uint8[len(nodes)].

    ``oldest``: a host whose last heartbeat is before this time (seconds since the epoch) is down. ``fleet``:
    a host whose root provider has the trait `DISABLED_TRAIT` is disabled, for hosts without an agent have no
    other mark; None: placement is not known.
    """
    enabled = table.enabled[nodes]
    if fleet is not None:
        enabled &= ~_marked(fleet, table)[nodes]
    alive = table.seen_since(oldest)[nodes]
    return np.where(alive, np.where(enabled, UP, DISABLED), DOWN).astype(np.uint8)


def _marked(fleet: Fleet, table: NodeTable) -> Bools:
    """Return for each index of the table whether its root provider is disabled: bool[table.size]."""
    rows = fleet.with_trait(DISABLED_TRAIT).rows()
    fleet.meter.spend_rows(len(rows))
    marked = table.indexes_of_rows(fleet, rows)
    found: Bools = np.zeros(table.size, dtype=np.bool_)
    found[marked[marked >= 0]] = True
    return found

"""The errors of changes of hosts.

    NotFound
    ├── NoSuchHost       no cell has the host
    ├── NoSuchNode       the host has no such node
    └── NoSuchCell       there is no such cell
    Conflict
    ├── HostElsewhere    another cell has a host of this name
    ├── HostInUse        the host has instances, claims or orders
    ├── CellInUse        the cell has hosts or instances
    └── HostIsUp         the host's agent shows signs of life
    Unavailable
    └── CellUnavailable  the cell's database cannot be asked

The statuses are those of `roost.web.errors`.
"""

from roost.web.errors import Conflict, NotFound, Unavailable


class NoSuchHost(NotFound):
    """No cell has the host."""

    def __init__(self, host: str) -> None:
        super().__init__(f"no host {host!r}")


class NoSuchNode(NotFound):
    """The host has no such node."""


class NoSuchCell(NotFound):
    """There is no such cell."""

    def __init__(self, cell: str) -> None:
        super().__init__(f"no cell {cell!r}")


class HostElsewhere(Conflict):
    """Another cell has a host of this name, or several have one."""


class HostInUse(Conflict):
    """The host has instances, claims or orders."""


class CellInUse(Conflict):
    """The cell has hosts or instances."""


class HostIsUp(Conflict):
    """The host's agent shows signs of life."""


class CellUnavailable(Unavailable):
    """The cell's database cannot be asked."""

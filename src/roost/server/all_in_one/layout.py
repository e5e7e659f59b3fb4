"""The layout of a system: cells and their simulated hosts."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from roost.agent.drivers.simulated import SimulatedHost
from roost.model.aggregate import Aggregate, HostAggregate
from roost.model.errors import OperatorError
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.process.durable_file import why_no_directory

FILE = "layout.json"


class LayoutHost(msgspec.Struct, frozen=True):
    """A simulated host and the aggregates that it is a member of."""

    host: SimulatedHost
    aggregates: tuple[HostAggregate, ...] = ()


class SystemLayout(msgspec.Struct, frozen=True):
    """The hosts of each cell, by the name of the cell."""

    cells: dict[str, tuple[LayoutHost, ...]]

    def aggregates(self) -> list[Aggregate]:
        """Return the host aggregates with their members, in order of their uuids."""
        named: dict[str, HostAggregate] = {}
        members: defaultdict[str, set[str]] = defaultdict(set)
        for there in (there for hosts in self.cells.values() for there in hosts):
            for each in there.aggregates:
                named[each.uuid] = each
                members[each.uuid].add(provider_uuid(there.host.name))
        return [
            Aggregate(
                uuid=uuid,
                name=named[uuid].name,
                metadata=named[uuid].metadata,
                members=frozenset(members[uuid]),
            )
            for uuid in sorted(named)
        ]

    @property
    def hosts(self) -> int:
        """Number of hosts in all cells."""
        return sum(len(hosts) for hosts in self.cells.values())


def cell_names(cells: int) -> list[str]:
    """Return the default names of cells: cell1, cell2, ..."""
    return [f"cell{number}" for number in range(1, cells + 1)]


def uniform_layout(
    hosts: int,
    cells: int,
    inventory: dict[str, Inventory],
    numa_topology: dict[str, object] | None = None,
    pci_device_pools: tuple[dict[str, object], ...] = (),
    names: Sequence[str] = (),
) -> SystemLayout:
    """Return a layout of equal hosts ``host-0001`` ..., distributed over the cells in turn.

    ``names``: the names of the cells, as many as ``cells``; by default cell1, cell2, ... For the other
    arguments see `SimulatedHost`.
    """
    names = names or cell_names(cells)
    dealt: dict[str, list[LayoutHost]] = {name: [] for name in names}
    for number in range(hosts):
        host = SimulatedHost(
            f"host-{number + 1:04}",
            inventory,
            numa_topology=numa_topology,
            pci_device_pools=pci_device_pools,
        )
        dealt[names[number % cells]].append(LayoutHost(host))
    return SystemLayout({name: tuple(there) for name, there in dealt.items()})


def kept_layout(directory: Path) -> SystemLayout | None:
    """Read the layout that a data directory was set up with; None if it is new. Raises `OperatorError`."""
    path = directory / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=SystemLayout)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise OperatorError(f"cannot read {path}: {error}") from error


def keep_layout(directory: Path, layout: SystemLayout) -> None:
    """Write the layout beside the databases, whole or not at all.

    Raises `OperatorError` if the directory cannot be used or was set up with another layout.
    """
    path = directory / FILE
    kept = kept_layout(directory)
    if kept == layout:
        return
    if kept is not None:
        raise OperatorError(f"data directory {directory} was set up with other hosts, see {path}")
    temporary = path.with_suffix(".new")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(msgspec.json.encode(layout))
        temporary.replace(path)
    except OSError as error:
        raise OperatorError(
            f"data directory {directory} cannot be used: {why_no_directory(error)}"
        ) from error

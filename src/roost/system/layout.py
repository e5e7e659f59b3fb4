"""What a system is made of: cells and their simulated hosts."""

import msgspec

from roost.compute.drivers.simulated import SimulatedHost
from roost.model.host import HostAggregate
from roost.model.inventory import Inventory


class LayoutHost(msgspec.Struct, frozen=True):
    """A simulated host and the aggregates that its operator put it in."""

    host: SimulatedHost
    aggregates: tuple[HostAggregate, ...] = ()


class Layout(msgspec.Struct, frozen=True):
    """Cell name -> its hosts."""

    cells: dict[str, tuple[LayoutHost, ...]]

    @property
    def hosts(self) -> int:
        """Number of hosts in all cells."""
        return sum(len(hosts) for hosts in self.cells.values())


def cell_names(cells: int) -> list[str]:
    """The names that cells have: cell1, cell2, ..."""
    return [f"cell{number}" for number in range(1, cells + 1)]


def uniform_layout(hosts: int, cells: int, inventory: dict[str, Inventory]) -> Layout:
    """Equal hosts ``host-0001`` ..., dealt out to the cells in turn."""
    names = cell_names(cells)
    dealt: dict[str, list[LayoutHost]] = {name: [] for name in names}
    for number in range(hosts):
        host = SimulatedHost(f"host-{number + 1:04}", inventory)
        dealt[names[number % cells]].append(LayoutHost(host))
    return Layout({name: tuple(there) for name, there in dealt.items()})

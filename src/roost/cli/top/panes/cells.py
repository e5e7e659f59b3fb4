"""Cells: their states, conductors, hosts and instances, as the conductor tells."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
from rich.text import Text

from roost.cli.top.panes.columns import PaneColumn
from roost.cli.top.panes.pane import PaneQuery, TableView
from roost.cli.top.service_reader import ServiceReader


class WatchedCell(msgspec.Struct, frozen=True):
    """A cell. ``instances``: their numbers by state; None if the cell is down."""

    name: str
    state: str
    conductors: int
    instances: dict[str, int] | None
    enabled: bool | None = None
    hosts: int = 0
    hosts_up: int = 0


class WatchedCells(msgspec.Struct, frozen=True):
    """All cells."""

    cells: list[WatchedCell]


_COLUMNS: Final = (
    PaneColumn("cell"),
    PaneColumn("state", 12),
    PaneColumn("conductors", 10, right=True, rank=1),
    PaneColumn("hosts up", 17, right=True),
    PaneColumn("instances", 9, right=True),
    PaneColumn("active", 9, right=True, rank=2),
    PaneColumn("error", 9, right=True, rank=2),
)


class CellsPane:
    """The pane of cells, those that are not up first."""

    title = "cells"
    key = "c"
    pages = False
    sorts: Sequence[str] = ()
    searches = False

    def read(self, services: ServiceReader, query: PaneQuery) -> TableView:
        """Read all cells."""
        cells = services.read("conductor", "/v1/cells", WatchedCells).cells
        states = Counter(each.state for each in cells)
        said = Text(f"{len(cells):,} cells: {states.pop('up', 0):,} up")
        for state, number in sorted(states.items()):
            said.append(", ").append(f"{number:,} {state.replace('_', ' ')}", "bold red")
        up, hosts = sum(each.hosts_up for each in cells), sum(each.hosts for each in cells)
        said.append(f"; {up:,} of {hosts:,} hosts up")
        ordered = sorted(cells, key=lambda each: (each.state == "up", each.enabled is not False))
        return TableView(said, _COLUMNS, [_row(each) for each in ordered], nothing="there are no cells")


def _row(cell: WatchedCell) -> list[str | Text]:
    state = Text(cell.state.replace("_", " "), "" if cell.state == "up" else "bold red")
    if cell.state == "up" and cell.enabled is False:
        state = Text("disabled", "yellow")
    counts = cell.instances
    return [
        cell.name,
        state,
        f"{cell.conductors:,}",
        Text(f"{cell.hosts_up:,} of {cell.hosts:,}", "red" if cell.hosts_up < cell.hosts else ""),
        "?" if counts is None else f"{sum(counts.values()):,}",
        "?" if counts is None else f"{counts.get('active', 0):,}",
        "?" if counts is None else f"{counts.get('error', 0):,}",
    ]

"""GPUs and other devices: the hosts of one resource class that is no processor, memory or disk."""

from collections.abc import Sequence
from typing import Final

import msgspec
from rich.text import Text

from roost.cli.tables import one_line
from roost.cli.top.panes.columns import Cell, PaneColumn
from roost.cli.top.panes.hosts import (
    LARGEST,
    NOTHING,
    ORDERS,
    PATH,
    ListedAmount,
    ListedHosts,
    bar_cell,
    state_cell,
)
from roost.cli.top.panes.pane import PaneQuery, TableView
from roost.cli.top.service_reader import ServiceReader

PLAIN: Final = frozenset(("VCPU", "PCPU", "MEMORY_MB", "DISK_GB"))
"""Resource classes that are no devices."""


class ClassesOfCloud(msgspec.Struct, frozen=True):
    """The resource classes of a cloud, with capacity and use."""

    resources: dict[str, ListedAmount]


_COLUMNS: Final = (
    PaneColumn("host", ends=True),
    PaneColumn("state", 8),
    PaneColumn("cell", 10, rank=2),
    PaneColumn("zone", 10, rank=3),
    PaneColumn("free", 7, right=True),
    PaneColumn("used", 7, right=True),
    PaneColumn("of", 7, right=True),
    PaneColumn("", 12, rank=1),
)


class DevicesPane:
    """The pane of devices. The arrows to the left and right choose the resource class."""

    title = "GPUs"
    key = "g"
    pages = True
    sorts: Sequence[str] = ("free", "used", "name")
    searches = True

    def read(self, services: ServiceReader, query: PaneQuery) -> TableView:
        """Read the classes, and a page of the hosts of the chosen one."""
        classes = services.read("placement", "/v1/capacity", ClassesOfCloud, fullest=0).resources
        names = sorted(classes.keys() - PLAIN)
        if not names:
            return TableView(
                Text("no devices"),
                _COLUMNS,
                [],
                nothing="No host has a resource class but VCPU, PCPU, MEMORY_MB and DISK_GB.",
            )
        chosen = names[query.choice % len(names)]
        page = services.read(
            "scheduler",
            PATH,
            ListedHosts,
            sort=query.sort,
            resource_class=chosen,
            search=query.search or None,
            offset=query.first,
            limit=min(max(query.rows, 1), LARGEST),
        )
        rows: list[list[Cell]] = []
        for host in page.hosts:
            amount = host.resources.get(chosen, NOTHING)
            free = amount.capacity - amount.used
            rows.append(
                [
                    host.host,
                    state_cell(host),
                    host.cell,
                    host.zone,
                    Text(f"{free:,}", "bold green" if free > 0 and host.state == "up" else ""),
                    f"{amount.used:,}",
                    f"{amount.capacity:,}",
                    bar_cell(amount.used, amount.capacity),
                ]
            )
        of = classes[chosen]
        place = f"◂ {query.choice % len(names) + 1}/{len(names)} ▸ " if len(names) > 1 else ""
        said = Text.assemble(
            (place, "dim"),
            (one_line(chosen), "bold"),
            f": {of.used:,} used of {of.capacity:,}, {page.matching:,} hosts; {ORDERS[query.sort]}",
        )
        return TableView(said, _COLUMNS, rows, query.first, page.matching, "no host matches", names)

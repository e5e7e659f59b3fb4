"""Hosts by use, free amounts, state or name: the scheduler sorts and pages them."""

from collections.abc import Sequence
from typing import Final

import msgspec
from rich.text import Text

from roost.cli.bars import bar
from roost.cli.top.panes.columns import NEARLY_FULL, Cell, PaneColumn, share_cell
from roost.cli.top.panes.pane import PaneQuery, TableView
from roost.cli.top.service_reader import ServiceReader

PATH: Final = "/v1/scheduler/hosts"
LARGEST: Final = 1000
"""Rows of a request at most."""

BAR: Final = 12

STATE_STYLES: Final = {"up": "", "disabled": "yellow", "down": "bold red"}


class ListedAmount(msgspec.Struct, frozen=True):
    """Amounts of a resource class on a host, in units of the class."""

    capacity: int
    used: int


NOTHING: Final = ListedAmount(0, 0)


class ListedHost(msgspec.Struct, frozen=True):
    """A host as the scheduler lists it."""

    host: str
    zone: str
    cell: str
    state: str
    instances: int
    resources: dict[str, ListedAmount]


class ListedHosts(msgspec.Struct, frozen=True):
    """A page of hosts."""

    hosts: list[ListedHost]
    matching: int
    up: int
    disabled: int
    down: int
    hosts_known: int


_COLUMNS: Final = (
    PaneColumn("host", ends=True),
    PaneColumn("state", 8),
    PaneColumn("cell", 10, rank=3),
    PaneColumn("zone", 10, rank=4),
    PaneColumn("guests", 6, right=True, rank=2),
    PaneColumn("VCPU", 5, right=True),
    PaneColumn("memory", 6, right=True),
    PaneColumn("disk", 5, right=True, rank=1),
    PaneColumn("fullest", 7, right=True),
    PaneColumn("", BAR, rank=5),
    PaneColumn("class", 20, rank=6),
)
_SHOWN: Final = ("VCPU", "MEMORY_MB", "DISK_GB")

ORDERS: Final = {"used": "fullest first", "state": "down first", "name": "by name", "free": "most free first"}


class HostsPane:
    """The pane of hosts."""

    title = "hosts"
    key = "h"
    pages = True
    sorts: Sequence[str] = ("used", "state", "name")
    searches = True

    def read(self, services: ServiceReader, query: PaneQuery) -> TableView:
        """Read a page of hosts."""
        page = services.read(
            "scheduler",
            PATH,
            ListedHosts,
            sort=query.sort,
            search=query.search or None,
            offset=query.first,
            limit=min(max(query.rows, 1), LARGEST),
        )
        said = states_text(page, query)
        return TableView(
            said,
            _COLUMNS,
            [_row(each) for each in page.hosts],
            query.first,
            page.matching,
            f"no host has {query.search!r} in its name" if query.search else "there are no hosts",
        )


def states_text(page: ListedHosts, query: PaneQuery) -> Text:
    """Return how many hosts match, by state, of how many, and their order."""
    said = Text(f"{page.matching:,} {'host' if page.matching == 1 else 'hosts'}")
    if page.matching != page.hosts_known:
        said.append(f" of {page.hosts_known:,}")
    said.append(f": {page.up:,} up")
    for state, number in (("disabled", page.disabled), ("down", page.down)):
        if number:
            said.append(", ")
            said.append(f"{number:,} {state}", STATE_STYLES[state])
    return said.append(f"; {ORDERS[query.sort]}")


def state_cell(host: ListedHost) -> Text:
    """Return the state of a host in its colour."""
    return Text(host.state, STATE_STYLES.get(host.state, ""))


def bar_cell(used: int, capacity: int) -> Text:
    """Return the share in use as a bar."""
    share = used / max(capacity, 1)
    return Text(bar(share, BAR), "red" if share >= NEARLY_FULL else "cyan")


def _row(host: ListedHost) -> list[Cell]:
    amounts = [host.resources.get(name, NOTHING) for name in _SHOWN]
    name, fullest = max(host.resources.items(), key=lambda each: _share(each[1]), default=("", NOTHING))
    return [
        host.host,
        state_cell(host),
        host.cell,
        host.zone,
        f"{host.instances:,}",
        *(share_cell(each.used, each.capacity) for each in (*amounts, fullest)),
        bar_cell(fullest.used, fullest.capacity),
        name if fullest.used else "",
    ]


def _share(amount: ListedAmount) -> float:
    return amount.used / max(amount.capacity, 1)

"""Panes without a service, shown on the terminal of this program. Its argument says what happens.

``rows``: 1,000 rows and a head. ``fails``: the second reading raises an error. ``silent``: no answer comes.
"""

import sys
import time
from collections.abc import Sequence

import click
from rich.text import Text

from roost.cli.main import COMMANDS, main
from roost.cli.top.panes.columns import PaneColumn
from roost.cli.top.panes.pane import PaneQuery, TableView
from roost.cli.top.service_reader import ServiceReader
from roost.cli.top.terminal import show_panes


class Numbers:
    """A pane of numbered rows."""

    pages = True
    sorts: Sequence[str] = ()
    searches = True

    def __init__(self, title: str, kind: str) -> None:
        self.title = title
        self.key = title[0]
        self._kind = kind
        self._reads = 0

    def read(self, services: ServiceReader, query: PaneQuery) -> TableView:
        self._reads += 1
        if self._kind == "silent":
            time.sleep(3600)
        if self._kind == "fails" and self._reads > 1:
            raise RuntimeError("a defect")
        rows = [[f"row {number}"] for number in range(query.first, min(query.first + query.rows, 1000))]
        return TableView(
            Text(f"{self.title} with {query.search!r}"), (PaneColumn("column"),), rows, query.first, 1000
        )


@click.command()
@click.argument("kind")
def shown(kind: str) -> None:
    with ServiceReader({}) as services:
        show_panes([Numbers("first", kind), Numbers("second", "rows")], services, 0.1)


if __name__ == "__main__":
    COMMANDS["shown"] = "panes_to_show:shown"
    sys.argv[1:1] = ["shown"]
    main()

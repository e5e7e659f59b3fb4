"""Two processes that make the same row at the same time: one makes it, the other one finds it.

Each work reads that a row is missing, and makes it. Both have read before one of them writes.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from roost.model.node import NodeReport
from roost.server.process import prepare_database
from roost.state.api_database.cell_mappings import CellMapping, map_unknown_cell, write_cell_mappings
from roost.state.api_database.host_mappings import add_host_mappings
from roost.state.api_database.past import note_late_claims
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import SCHEMA as CELL
from roost.state.cell_database.arrivals import raise_fences
from roost.state.cell_database.disabled import add_host_row, enable_host
from roost.state.cell_database.host_admission import hold_host
from roost.state.cell_database.hosts import note_providers
from roost.state.cell_database.nodes import keep_reports
from roost.state.leases import AcquireLease
from roost.storage import Database, Schema, Transaction
from support.waiting import patience

Work = Callable[[sa.Connection], object]


def lease(holder: str) -> AcquireLease:
    return AcquireLease(name="l", kind="k", holder=holder, host="a", service_version=1, now=1.0)


def report(host: str) -> Transaction[None]:
    return keep_reports((NodeReport(node="n", host=host, cell="c"),))


def new_fences(connection: sa.Connection) -> int:
    return len(raise_fences(connection, {"u": 1}, 1.0).new)


OF_CONDUCTORS: dict[str, tuple[Work, Work, int]] = {
    "know a cell": (map_unknown_cell(CellMapping("c", "s")), map_unknown_cell(CellMapping("c", "s")), 1),
    "map cells": (
        write_cell_mappings((CellMapping("d", "s"),)),
        write_cell_mappings((CellMapping("d", "s"),)),
        0,
    ),
    "map hosts": (add_host_mappings(("h", "i"), "c"), add_host_mappings(("h",), "d"), 1),
    "note late claims": (note_late_claims(("u", "v")), note_late_claims(("v",)), 0),
}
OF_CELLS: dict[str, tuple[Work, Work, int]] = {
    "add a host": (add_host_row("h", 1.0), add_host_row("h", 2.0), 0),
    "disable a host": (enable_host("i", False, "", 1.0), enable_host("i", False, "", 2.0), 0),
    "hold a host": (hold_host("h", "why", 1.0), hold_host("h", "why", 2.0), 0),
    "note providers": (note_providers("r", ("p", "q")), note_providers("r", ("q",)), 0),
    "acquire a lease": (lease("A"), lease("B"), 1),
    "report a node": (report("a"), report("b"), 0),
    "raise a fence": (new_fences, new_fences, 1),
}
"""The works of both, and how many of them answer something: `add_host_mappings` answers what refuses it."""


def at_once(url: str, works: tuple[Work, Work]) -> list[object]:
    """The results of two works of which both have read when the first one writes."""
    both_have_read = threading.Barrier(2, timeout=patience(30))

    def run(work: Work) -> object:
        database = Database(url)
        waited = False

        def wait(connection, cursor, statement: str, *_: object) -> None:
            nonlocal waited
            if statement.startswith("INSERT") and not waited:
                waited = True
                both_have_read.wait()

        sa.event.listen(database.engine, "before_cursor_execute", wait)
        try:
            return database.write_now(work)
        finally:
            asyncio.run(database.close())

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(run, works))


@pytest.mark.parametrize("schema, cases", [(CONDUCTOR, OF_CONDUCTORS), (CELL, OF_CELLS)], ids=["api", "cell"])
@pytest.mark.parametrize("database_url", ["postgresql", "mariadb"], indirect=True)
def test_second_of_two_finds_what_the_first_has_made(
    database_url: str, schema: Schema, cases: dict[str, tuple[Work, Work, int]]
) -> None:
    prepare_database(database_url, True, schema)
    for name, (one, other, answering) in cases.items():
        found = at_once(database_url, (one, other))
        assert sum(map(bool, found)) == answering, (name, found)

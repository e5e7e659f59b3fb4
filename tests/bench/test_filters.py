"""The three ways to find hosts find the same hosts, and the benchmark reports a difference."""

import asyncio
from pathlib import Path

import pytest

from roost.bench import filters
from roost.bench.fleets import DISABLED_EVERY, FleetPlan, flat, nearly_full
from roost.bench.store import SqliteStore
from roost.ledger.load import load
from roost.storage import Database

HOSTS = 2 * DISABLED_EVERY


@pytest.mark.parametrize("plan", [flat(HOSTS), nearly_full(HOSTS)], ids=str)
def test_all_ways_find_the_same_hosts(plan: FleetPlan, tmp_path: Path):
    found = []

    def look(connection) -> None:
        fleet = load(connection)
        for ask in filters.host_queries(fleet):
            ways = (
                filters.find_by_loop(connection, ask),
                filters.find_by_where(connection, ask),
                filters.find_by_fleet(fleet, ask),
            )
            assert ways[0] == ways[1] == ways[2]
            found.append(len(ways[0]))

    with SqliteStore(tmp_path).copy(plan, "roost") as url:
        database = Database(url, read_only=True)
        database.read_now(look)
        asyncio.run(database.close())
    # Disabled hosts are never found. Nearly full hosts have capacity for small flavors only.
    assert max(found) == HOSTS - 2
    assert (min(found) < max(found)) == (plan.name == "full")


@pytest.mark.parametrize("way", ["find_by_loop", "find_by_where", "find_by_fleet"])
def test_a_way_that_finds_others_is_noticed(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    find = getattr(filters, way)
    monkeypatch.setattr(filters, way, lambda *given: set(list(find(*given))[1:]))
    found = filters.measure(SqliteStore(tmp_path), [flat(20)], 0.001)
    assert len(found.wrong) == len(filters.SIZES)


def test_a_plot_is_drawn(tmp_path: Path):
    found = filters.measure(SqliteStore(tmp_path), [flat(10), flat(20)], 0.001)
    assert not found.wrong
    filters.draw_filters(found, tmp_path / "filters.png")
    assert (tmp_path / "filters.png").read_bytes().startswith(b"\x89PNG")

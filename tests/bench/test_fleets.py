"""A plan makes the same fleet in memory, in Roost's database and in OpenStack Placement's."""

import asyncio
import os
from pathlib import Path

import pytest

from roost.bench.errors import BenchError
from roost.bench.fleets import FleetPlan, flat, nearly_full, nested, wide
from roost.bench.memory_fleet import build_fleet, build_node_table
from roost.bench.store import PostgresqlStore, SqliteStore, Store, open_store
from roost.ledger.holdings import held_by_all
from roost.model.errors import OperatorError
from roost.storage import Database
from support.databases import Servers
from support.exchange.exchanging import fleet_in, imported, prepared
from support.fleets import snapshot
from support.servers import server_folder

PLANS = [flat(120), nested(60), wide(3), wide(2, devices=32), nearly_full(5)]
by_plan = pytest.mark.parametrize("plan", PLANS, ids=str)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Store:
    """A store of each kind."""
    if request.param == "sqlite":
        return SqliteStore(tmp_path / "store")
    servers.needs("postgresql")
    return PostgresqlStore(servers.running("postgresql").url("postgres"))


@by_plan
def test_a_plan_has_the_size_it_says(plan: FleetPlan):
    fleet = build_fleet(plan)
    assert len(fleet) == plan.providers
    assert [fleet.uuid(row) for row in fleet.rows().tolist() if fleet.parent.item(row) < 0] == plan.roots()
    assert len(build_node_table(plan)) == plan.hosts


@by_plan
def test_memory_and_database_hold_the_same(plan: FleetPlan, store: Store):
    with store.copy(plan, "roost") as url:
        assert snapshot(fleet_in(url)) == snapshot(build_fleet(plan))


@by_plan
def test_every_consumer_holds_what_is_in_use(plan: FleetPlan, tmp_path: Path):
    with SqliteStore(tmp_path).copy(plan, "roost") as url:
        database = Database(url, read_only=True)
        held = database.read_now(held_by_all)
        asyncio.run(database.close())
    fleet = build_fleet(plan)
    assert len(held) == plan.hosts
    in_use = {uuid: resources for each in held.values() for uuid, resources in each.allocations.items()}
    usages = {fleet.uuid(row): fleet.usages(row) for row in fleet.rows().tolist()}
    assert in_use == {uuid: use for uuid, use in usages.items() if any(use.values())}


def test_upstreams_database_holds_the_same(store: Store, tmp_path: Path):
    plan = nested(10)
    with store.copy(plan, "upstream") as url:
        target = prepared(f"sqlite:///{tmp_path / 'back.db'}")
        assert not imported(url, target).anomalies
    there, here = snapshot(fleet_in(target)), snapshot(build_fleet(plan))
    # An import numbers custom traits anew.
    assert there.pop("traits").keys() == here.pop("traits").keys()
    assert there == here


def test_a_database_is_filled_once_and_copied(store: Store, monkeypatch: pytest.MonkeyPatch):
    plan = flat(7)
    with store.copy(plan, "roost") as first:
        pass
    monkeypatch.setattr(store, "fill", lambda *_: pytest.fail("filled again"))
    with store.copy(plan, "roost") as second:
        assert first != second
        assert len(fleet_in(second)) == 7


def test_what_a_killed_run_left_is_cleaned_up(store: Store):
    plan = flat(7)
    copied = store.copy(plan, "roost")
    copied.__enter__()  # as a process that is killed during the context
    left = [name for name in store.database_names() if name.startswith("run_")]
    store.create("making_it")
    store.clean_up()
    names = store.database_names()
    assert left
    assert not {*left, "making_it"} & set(names)
    assert store.original(plan, "roost") in names


def test_one_at_a_time_measures_in_a_directory(tmp_path: Path):
    with (
        open_store(tmp_path, "sqlite"),
        pytest.raises(OperatorError, match="in use by another roost"),
        open_store(tmp_path, "sqlite"),
    ):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers by another account")
def test_a_directory_that_the_server_cannot_reach_is_named(tmp_path: Path, servers: Servers):
    servers.needs("postgresql")
    tmp_path.chmod(0o700)
    with (
        pytest.raises(BenchError, match=f"cannot reach {tmp_path}/postgresql, for {tmp_path}: name another"),
        open_store(tmp_path, "postgresql"),
    ):
        pass


def test_a_server_of_ones_own_keeps_its_fleets(servers: Servers):
    servers.needs("postgresql")
    with server_folder() as folder:
        with open_store(folder, "postgresql") as store:
            name = store.original(flat(7), "roost")
        with open_store(folder, "postgresql") as store:
            assert name in store.database_names()


def test_a_filling_that_was_cut_off_leaves_nothing_to_be_taken_for_a_fleet(tmp_path: Path, monkeypatch):
    store, plan = SqliteStore(tmp_path), flat(7)
    fill = store.fill

    def cut_off(name: str, plan: FleetPlan) -> None:
        fill(name, plan)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "fill", cut_off)
        with pytest.raises(KeyboardInterrupt), store.copy(plan, "roost"):
            pass
    with store.copy(plan, "roost") as url:
        assert len(fleet_in(url)) == 7

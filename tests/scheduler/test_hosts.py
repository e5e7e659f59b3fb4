"""The host table."""

import gc
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.fleet import Fleet
from roost.model.change import ProviderChanged, ProviderFacts
from roost.model.host import HostAggregate, HostReport
from roost.scheduler.asking import verdict
from roost.scheduler.hosts import HostTable
from roost.scheduler.offers import HostView
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins import filters
from roost.scheduler.question import Progress
from support.clouds import replace_report, report, spec
from support.offering import MadeUp, question

FAST = HostAggregate("agg-fast", "fast", {"availability_zone": "az1", "ssd": "yes"})
SLOW = HostAggregate("agg-slow", "slow", {"availability_zone": "az2"})


def fleet_of(*uuids: str) -> Fleet:
    fleet = Fleet()
    for row, uuid in enumerate(uuids):
        fleet.apply(ProviderChanged(uuid, row, None, ProviderFacts(uuid, None, 0)))
    return fleet


def hosts_at(table: HostTable, fleet: Fleet) -> list[int]:
    return table.indexes_of_rows(fleet, fleet.rows()).tolist()


def test_index_of_a_host_stays() -> None:
    table = HostTable([report("a", "node-a"), report("b", "node-b")])
    table.update([report("c", "node-c"), report("a", "node-a", enabled=False)])
    assert [table.index(name) for name in "abcx"] == [0, 1, 2, None]
    assert table.enabled[: len(table)].tolist() == [False, True, True]
    assert table.report(0).enabled is False


def test_cells_are_numbered_as_they_come_and_hosts_may_move() -> None:
    table = HostTable([report("a", "a", cell="x"), report("b", "b", cell="y")])
    table.update([report("a", "a", cell="y")])
    assert table.cells == ["x", "y"]
    assert table.cell[: len(table)].tolist() == [1, 1]


def test_metrics_are_nan_where_not_reported() -> None:
    table = HostTable([report("a", "a", metrics={"heat": 20.0}), report("b", "b")])
    assert table.metric("heat")[0] == 20.0
    assert math.isnan(table.metric("heat")[1])
    assert np.isnan(table.metric("power")).all()
    table.update([report("a", "a", metrics={"power": 1.0})])
    assert np.isnan(table.metric("heat")).all()
    assert table.metric("power")[0] == 1.0


def test_metric_that_is_not_finite_counts_as_not_reported() -> None:
    table = HostTable([report("a", "a", metrics={"heat": math.inf}), report("b", "b", metrics={"heat": 1.0})])
    assert math.isnan(table.metric("heat")[0])


def test_metadata_follows_what_hosts_report() -> None:
    table = HostTable([report("a", "a", aggregates=(FAST,)), report("b", "b", aggregates=(FAST, SLOW))])
    zones = table.metadata("availability_zone")
    assert zones is not None
    assert [zones.of(0), zones.of(1)] == [("az1",), ("az1", "az2")]
    assert table.metadata("other") is None
    assert table.aggregates_with("availability_zone", "az1") == {"agg-fast"}
    assert table.aggregates_with("availability_zone", "az2") == {"agg-slow"}

    table.update([report("b", "b")])
    assert table.aggregates_with("availability_zone", "az2") == frozenset()
    assert table.aggregates_with("availability_zone", "az1") == {"agg-fast"}
    table.update([report("a", "a")])
    assert table.aggregates_with("availability_zone", "az1") == frozenset()
    assert zones.of(0) == ()


def test_aggregate_whose_metadata_changes() -> None:
    table = HostTable([report("a", "a", aggregates=(FAST,))])
    table.update([report("a", "a", aggregates=(HostAggregate("agg-fast", "fast", {"ssd": "no"}),))])
    assert table.aggregates_with("availability_zone", "az1") == frozenset()
    assert table.aggregates_with("ssd", "no") == {"agg-fast"}


def test_rows_without_a_host_and_hosts_without_a_row() -> None:
    table = HostTable([report("gone", "nowhere"), report("a", "node-a")])
    assert hosts_at(table, fleet_of("disk", "node-a")) == [-1, 1]


def test_rows_are_found_anew_when_providers_come_and_hosts_report() -> None:
    table = HostTable([report("a", "node-a")])
    fleet = fleet_of("node-b")
    assert hosts_at(table, fleet) == [-1]
    fleet.apply(ProviderChanged("node-a", 1, None, ProviderFacts("node-a", None, 0)))
    assert hosts_at(table, fleet) == [-1, 0]
    table.update([report("b", "node-b")])
    assert hosts_at(table, fleet) == [1, 0]


def test_rows_are_found_anew_in_a_fleet_that_was_loaded_again() -> None:
    table = HostTable([report("a", "node-a"), report("b", "node-b")])
    first = fleet_of("node-a", "node-b")
    assert hosts_at(table, first) == [0, 1]
    del first
    gc.collect()
    # As likely as not at the same address, and of the same roster.
    assert hosts_at(table, fleet_of("node-b", "node-a")) == [1, 0]


def test_host_that_is_made_anew_has_another_root_provider() -> None:
    table = HostTable([report("a", "old")])
    table.update([report("a", "new")])
    assert table.index_of_node("old") is None
    assert table.index_of_node("new") == 0
    assert hosts_at(table, fleet_of("old", "new")) == [-1, 0]


def test_provider_named_by_two_hosts_is_that_ones_who_named_it_last() -> None:
    table = HostTable([report("a", "node"), report("b", "other")])
    table.update([report("b", "node")])
    assert table.index_of_node("node") == 1
    # Its old name is heard of once more: that changes nothing.
    table.update([report("a", "node")])
    assert table.index_of_node("node") == 1
    assert hosts_at(table, fleet_of("node")) == [1]
    # It goes on to another provider: then the old one takes this one back.
    table.update([report("b", "third")])
    table.update([report("a", "node")])
    assert table.index_of_node("node") == 0


aggregates = st.builds(
    HostAggregate,
    st.sampled_from(["agg-1", "agg-2"]),
    st.just("name"),
    st.dictionaries(st.sampled_from(["availability_zone", "ssd"]), st.sampled_from(["x", "y"])),
)
reports = st.builds(
    lambda name, node, cell, values, heat: replace_report(
        report(name, node),
        cell=cell,
        aggregates=tuple(values),
        metrics={} if heat is None else {"heat": heat},
    ),
    st.sampled_from("abc"),
    st.sampled_from(["n1", "n2", "n3"]),
    st.sampled_from(["x", "y"]),
    st.lists(aggregates, max_size=2),
    st.none() | st.floats(0, 9),
)


@given(st.lists(reports, max_size=12), st.sampled_from(["ssd", "availability_zone"]))
def test_filters_answer_by_what_is_reported_now_and_not_by_what_was(
    history: list[HostReport], key: str
) -> None:
    table = HostTable()
    for each in history:
        table.update([each])
    last = {each.host: each for each in history}
    fresh = HostTable(last.values())
    for extra_specs in ({key: "x"}, {f"aggregate_instance_extra_specs:{key}": "y"}):
        asked = question(of=spec(extra_specs=extra_specs, availability_zone="x"))
        for plugin in filters(SchedulerOptions()):
            masks = [
                verdict(plugin, HostView(each, MadeUp([1] * len(each))), asked, Progress())
                for each in (table, fresh)
            ]
            old, new = (np.ones(len(table), dtype=np.bool_) if mask is None else mask for mask in masks)
            assert old.tolist() == new.tolist(), plugin.name


@pytest.mark.parametrize("comes", [False, True])
def test_structure_rises_when_a_metadata_key_comes_or_goes(comes: bool) -> None:
    plain, fast = report("a", "a"), report("a", "a", aggregates=(FAST,))
    before, after = (plain, fast) if comes else (fast, plain)
    table = HostTable([before, report("b", "b")])
    structure = table.structure
    table.update([after])
    assert table.structure > structure
    assert (table.metadata("availability_zone") is not None) is comes


@given(st.lists(reports, max_size=12))
def test_table_tells_what_the_last_reports_say(history: list[HostReport]) -> None:
    table = HostTable()
    for each in history:
        table.update([each])
    last = {each.host: each for each in history}
    assert table.names == list(last)
    for index, each in enumerate(last.values()):
        assert table.cells[table.cell.item(index)] == each.cell
        heat = table.metric("heat").item(index)
        assert heat == each.metrics["heat"] if each.metrics else math.isnan(heat)
        for key in ("availability_zone", "ssd"):
            labels = table.metadata(key)
            expected = tuple(one.metadata[key] for one in each.aggregates if key in one.metadata)
            assert (labels.of(index) if labels is not None else ()) == expected
    for key in ("availability_zone", "ssd"):
        for value in "xy":
            assert table.aggregates_with(key, value) == {
                one.uuid
                for each in last.values()
                for one in each.aggregates
                if one.metadata.get(key) == value
            }

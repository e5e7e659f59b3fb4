"""The node table after any history of reports, aggregates and removals, against a plain model."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.aggregate import HostAggregate
from roost.model.node import NodeReport
from roost.model.node_event import AggregateEvent, AggregateRemoved, AggregateSet, MembershipsSet
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugin_calls import verdict
from roost.scheduler.plugins.plugins import Filter, Plugins
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest
from support.clouds import NOW, InAggregates, replace_report, report, spec, table_of
from support.offering import MadeUp, scheduling_request

aggregates = st.builds(
    HostAggregate,
    st.sampled_from(["agg-1", "agg-2"]),
    st.just("name"),
    st.dictionaries(st.sampled_from(["availability_zone", "ssd"]), st.sampled_from(["x", "y"])),
)
reports = st.builds(
    lambda name, node, nodename, cell, seen, heat: replace_report(
        report(name, node),
        nodename=nodename,
        cell=cell,
        last_seen=NOW - seen,
        metrics={} if heat is None else {"heat": heat},
    ),
    st.sampled_from("abc"),
    st.sampled_from(["n1", "n2", "n3", "n4"]),
    st.sampled_from(["", "x"]),
    st.sampled_from(["x", "y"]),
    st.sampled_from([1, 100]),
    st.none() | st.floats(0, 9),
)
memberships = st.builds(
    MembershipsSet,
    st.sampled_from(["n1", "n2", "n3", "n4"]),
    st.sets(st.sampled_from(["agg-1", "agg-2"])).map(sorted).map(tuple),
)
events = st.builds(AggregateSet, aggregates) | memberships | st.builds(AggregateRemoved, st.just("agg-1"))
Happening = NodeReport | AggregateEvent | str
histories = st.lists(reports | events | st.sampled_from(["n1", "n2", "n3"]), max_size=20)
"""Reports, events of aggregates, and the uuids of nodes that are removed."""


def table_after(history: list[Happening]) -> tuple[NodeTable, dict[str, InAggregates]]:
    """The table after a history, and the last report of each node that is there, with its aggregates."""
    table = NodeTable()
    last: dict[str, NodeReport] = {}
    there: dict[str, HostAggregate] = {}
    inside: dict[str, tuple[str, ...]] = {}
    for each in history:
        if isinstance(each, str):
            table.remove([each])
            last.pop(each, None)
        elif isinstance(each, AggregateEvent):
            table.apply_to_aggregates(each)
            if isinstance(each, AggregateSet):
                there[each.aggregate.uuid] = each.aggregate
            elif isinstance(each, AggregateRemoved):
                there.pop(each.uuid, None)
            else:
                inside[each.node] = each.aggregates
        else:
            table.update([each])
            name = (each.host, each.nodename or each.host)
            last = {n: r for n, r in last.items() if n == each.node or name != (r.host, r.nodename or r.host)}
            last[each.node] = each
        # As each decision does: who is alive is kept from here on.
        table.seen_since(NOW - 60)
    return table, {
        node: replace_report(
            each, aggregates=tuple(there[uuid] for uuid in inside.get(node, ()) if uuid in there)
        )
        for node, each in last.items()
    }


@settings(deadline=None)
@given(histories, st.sampled_from(["ssd", "availability_zone"]))
def test_filters_answer_by_what_is_reported_now_and_not_by_what_was(
    history: list[Happening], key: str
) -> None:
    table, last = table_after(history)
    fresh = table_of(last.values())
    for extra_specs in ({key: "x"}, {f"aggregate_instance_extra_specs:{key}": "y"}):
        asked = scheduling_request(of=spec(extra_specs=extra_specs, availability_zone="x"))
        for plugin in Plugins.enabled(SchedulerOptions()).filters:
            old, new = (_verdicts(each, plugin, asked) for each in (table, fresh))
            assert old == new, plugin.name


def _verdicts(table: NodeTable, plugin: Filter, asked: SchedulingRequest) -> dict[str, bool]:
    mask = verdict(plugin, HostView(table, MadeUp([1] * table.size)), asked, GroupPlacement())
    verdicts = np.ones(table.size, dtype=np.bool_) if mask is None else mask
    return {
        node: verdicts.item(index)
        for index, node in enumerate(table.nodes)
        if table.index_of_node(node) == index
    }


@settings(deadline=None)
@given(histories)
def test_table_tells_what_the_last_reports_say(history: list[Happening]) -> None:
    table, last = table_after(history)
    assert len(table) == len(last)
    beats = {
        each.host: max(r.last_seen for r in last.values() if r.host == each.host) for each in last.values()
    }
    for node, each in last.items():
        index = table.index_of_node(node)
        assert index is not None
        assert (table.hosts[index], table.nodes[index]) == (each.host, node)
        assert table.index(each.host, each.nodename) == index
        assert index in table.indexes_of_host(each.host)
        assert table.cells[table.cell.item(index)] == each.cell
        assert table.last_seen[table.service[index]] == beats[each.host]
        assert table.alive[index] == (beats[each.host] >= NOW - 60)
        heat = table.metric("heat").item(index)
        assert heat == each.metrics["heat"] if each.metrics else math.isnan(heat)
        for key in ("availability_zone", "ssd"):
            labels = table.metadata(key)
            expected = tuple(one.metadata[key] for one in each.aggregates if key in one.metadata)
            assert (labels.of(index) if labels is not None else ()) == expected
    for name in "abc":
        assert len(table.indexes_of_host(name)) == sum(each.host == name for each in last.values())
    for key in ("availability_zone", "ssd"):
        for value in "xy":
            assert table.aggregates_with(key, value) >= {
                one.uuid
                for each in last.values()
                for one in each.aggregates
                if one.metadata.get(key) == value
            }

"""Each filter, on hosts made for it."""

from collections import Counter

import numpy as np
import pytest

from roost.model.aggregate import HostAggregate
from roost.model.node import NodeReport
from roost.model.spec import RequestSpec, ServerGroup
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.plugins.plugin_calls import verdict
from roost.scheduler.request.scheduling_request import ELSEWHERE, GroupPlacement
from support.clouds import NOW, report, spec, table_of
from support.offering import MadeUp, named_filters, scheduling_request


def passed(
    name: str,
    reports: list[NodeReport],
    of: RequestSpec | None = None,
    members: dict[int, int] | None = None,
    **options: object,
) -> list[str]:
    """The hosts that a filter lets through."""
    table = table_of(reports)
    [plugin] = named_filters(name)
    view = HostView(table, MadeUp([1] * len(reports)))
    asked = scheduling_request(of=of, **options)  # type: ignore[arg-type]
    mask = verdict(plugin, view, asked, GroupPlacement(Counter(members or {})))
    if mask is None:
        return table.hosts
    assert mask.dtype == np.bool_
    assert len(mask) == len(reports)
    return [name for name, may in zip(table.hosts, mask.tolist(), strict=True) if may]


def in_aggregates(host: str, *metadata: dict[str, str]) -> NodeReport:
    aggregates = tuple(HostAggregate(f"{host}{number}", "name", each) for number, each in enumerate(metadata))
    return report(host, f"node-{host}", aggregates=aggregates)


def test_compute_up() -> None:
    reports = [
        report("up", "n0"),
        report("disabled", "n1", enabled=False),
        report("silent", "n2", last_seen=NOW - 60.1),
        report("just in time", "n3", last_seen=NOW - 60),
        report("ahead", "n4", last_seen=NOW + 5),
    ]
    assert passed("ComputeFilter", reports) == ["up", "just in time", "ahead"]
    assert "silent" in passed("ComputeFilter", reports, service_down_time=100.0)


ZONES = [
    in_aggregates("one", {"availability_zone": "az1"}),
    in_aggregates("both", {"availability_zone": "az1"}, {"availability_zone": "az2"}),
    in_aggregates("none", {"ssd": "yes"}),
    in_aggregates("nowhere"),
]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        (None, ["one", "both", "none", "nowhere"]),
        ("az1", ["one", "both"]),
        ("az2", ["both"]),
        ("az3", []),
        ("nova", ["none", "nowhere"]),
    ],
)
def test_availability_zone(zone: str | None, expected: list[str]) -> None:
    assert passed("AvailabilityZoneFilter", ZONES, spec(availability_zone=zone)) == expected


def test_default_availability_zone_has_a_name_of_its_own() -> None:
    asked = spec(availability_zone="home")
    assert passed("AvailabilityZoneFilter", ZONES, asked, default_availability_zone="home") == [
        "none",
        "nowhere",
    ]
    assert passed("AvailabilityZoneFilter", [in_aggregates("x")], asked) == []
    assert passed("AvailabilityZoneFilter", [in_aggregates("x")], spec(availability_zone="nova")) == ["x"]


SSD = [in_aggregates("yes", {"ssd": "yes"}), in_aggregates("no", {"ssd": "no"}), in_aggregates("none")]


@pytest.mark.parametrize(
    ("extra_specs", "expected"),
    [
        ({}, ["yes", "no", "none"]),
        ({"ssd": "yes"}, ["yes"]),
        ({"aggregate_instance_extra_specs:ssd": "yes"}, ["yes"]),
        ({"ssd": "<or> yes <or> no"}, ["yes", "no"]),
        ({"ssd": "maybe"}, []),
        ({"group_policy": "none"}, ["yes", "no", "none"]),
        ({"other": "x"}, []),
        ({"aggregate_instance_extra_specs:other": "x"}, []),
        ({"hw:ssd": "yes"}, ["yes", "no", "none"]),
        ({"aggregate_instance_extra_specs:hw:ssd": "yes"}, []),
        ({"ssd": "yes", "aggregate_instance_extra_specs:ssd": "no"}, []),
    ],
)
def test_aggregate_extra_specs(extra_specs: dict[str, str], expected: list[str]) -> None:
    assert passed("AggregateInstanceExtraSpecsFilter", SSD, spec(extra_specs=extra_specs)) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"), [("a", ["two"]), ("b", ["two"]), ("a,b", []), ("<in> ,", [])]
)
def test_values_joined_by_commas_are_alternatives(wanted: str, expected: list[str]) -> None:
    reports = [in_aggregates("two", {"kind": "a, b"})]
    assert (
        passed("AggregateInstanceExtraSpecsFilter", reports, spec(extra_specs={"kind": wanted})) == expected
    )


def test_aggregate_extra_specs_match_any_aggregate_of_the_host() -> None:
    reports = [in_aggregates("two", {"cores": "4"}, {"cores": "16"})]
    assert passed("AggregateInstanceExtraSpecsFilter", reports, spec(extra_specs={"cores": ">= 8"})) == [
        "two"
    ]
    assert passed("AggregateInstanceExtraSpecsFilter", reports, spec(extra_specs={"cores": ">= 32"})) == []


PLAIN = [report(f"host{number}", f"n{number}") for number in range(3)]


@pytest.mark.parametrize(
    ("policy", "most", "members", "expected"),
    [
        ("anti-affinity", 1, {}, [0, 1, 2]),
        ("anti-affinity", 1, {1: 1}, [0, 2]),
        ("anti-affinity", 2, {1: 1, 2: 2}, [0, 1]),
        ("affinity", 1, {0: 5}, [0, 1, 2]),
        (None, 1, {0: 5}, [0, 1, 2]),
    ],
)
def test_anti_affinity(policy: str | None, most: int, members: dict[int, int], expected: list[int]) -> None:
    group = None if policy is None else ServerGroup("g", policy, (), most)
    hosts = passed("ServerGroupAntiAffinityFilter", PLAIN, spec(group=group), members)
    assert hosts == [f"host{number}" for number in expected]


@pytest.mark.parametrize(
    ("policy", "known", "members", "expected"),
    [
        ("affinity", (), {}, [0, 1, 2]),
        ("affinity", ("host1",), {1: 1}, [1]),
        ("affinity", ("host1", "host2"), {1: 1, 2: 1}, [1, 2]),
        # Its members are where no agent reports from: nobody knows a host that would do.
        ("affinity", ("elsewhere",), {ELSEWHERE: 1}, []),
        ("anti-affinity", ("host1",), {1: 1}, [0, 1, 2]),
        (None, (), {}, [0, 1, 2]),
    ],
)
def test_affinity(
    policy: str | None, known: tuple[str, ...], members: dict[int, int], expected: list[int]
) -> None:
    group = None if policy is None else ServerGroup("g", policy, known)
    hosts = passed("ServerGroupAffinityFilter", PLAIN, spec(group=group), members)
    assert hosts == [f"host{number}" for number in expected]


@pytest.mark.parametrize("name", ["SameHostFilter", "DifferentHostFilter"])
def test_an_empty_hint_names_no_instance(name: str) -> None:
    [plugin] = named_filters(name)
    hint = name.replace("HostFilter", "").lower() + "_host"
    assert plugin.key(scheduling_request(of=spec(scheduler_hints={hint: ("",)}))) is None


@pytest.mark.parametrize("text", ["null", "{}", '""', "0", "[]"])
def test_a_query_of_nothing_is_satisfied(text: str) -> None:
    [plugin] = named_filters("JsonFilter")
    view = HostView(table_of([report("host0", "node0")]), MadeUp([1]))
    mask = verdict(
        plugin, view, scheduling_request(of=spec(scheduler_hints={"query": (text,)})), GroupPlacement()
    )
    assert mask is not None
    assert mask.tolist() == [True]


def test_a_query_that_is_nested_too_deeply_is_refused() -> None:
    [plugin] = named_filters("JsonFilter")
    view = HostView(table_of([report("host0", "node0")]), MadeUp([1]))
    asked = scheduling_request(of=spec(scheduler_hints={"query": ("[" * 100_000,)}))
    with pytest.raises(BadRequestSpec, match="query"):
        verdict(plugin, view, asked, GroupPlacement())


def test_reported_memory_is_compared_as_a_whole_number() -> None:
    [plugin] = named_filters("ComputeCapabilitiesFilter")
    table = table_of([report("host0", "node0", free_ram_mb=2048)])
    wanted = spec(extra_specs={"capabilities:free_ram_mb": "s== 2048"})
    mask = verdict(plugin, HostView(table, MadeUp([1])), scheduling_request(of=wanted), GroupPlacement())
    assert mask is not None
    assert mask.tolist() == [True]

"""Each weigher's numbers."""

import math
from typing import Any

import numpy as np
import pytest

from roost.fleet.columns import Int64
from roost.model.aggregate import HostAggregate
from roost.scheduler.candidates.candidate_source import CandidateSource, HostView
from roost.scheduler.errors import CannotWeigh
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import GroupPlacement
from support.clouds import report, table_of
from support.offering import MadeUp, by_metrics, named_weighers, scheduling_request


class Levels(MadeUp):
    """Each host has 100 of everything; host i uses i of VCPU, 10·i of MEMORY_MB, 20·i of DISK_GB."""

    def __init__(self, count: int) -> None:
        super().__init__([1] * count)

    def _sums(self, resource_class: str) -> tuple[Int64, Int64]:
        each = {"VCPU": 1, "MEMORY_MB": 10, "DISK_GB": 20}[resource_class]
        return np.full(len(self.index), 100), each * self.index


def numbers(
    name: str, table: NodeTable, offers: CandidateSource, chosen: Indexes | None = None, **options: Any
) -> list[float] | None:
    [weigher] = named_weighers(name, **options)
    raw = weigher.raw(HostView(table, offers, chosen), scheduling_request(**options), GroupPlacement())
    return None if raw is None else raw.tolist()


THREE = NodeTable(report(f"host{number}", f"n{number}") for number in range(3))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("CPUWeigher", [100, 99, 98]), ("RAMWeigher", [100, 90, 80]), ("DiskWeigher", [100, 80, 60])],
)
def test_free_resources(name: str, expected: list[float]) -> None:
    assert numbers(name, THREE, Levels(3)) == expected
    assert numbers(name, THREE, Levels(3), np.array([2, 0])) == [expected[2], expected[0]]


def test_build_failures() -> None:
    table = NodeTable([report("a", "n0", failed_builds=2), report("b", "n1"), report("c", "n2")])
    assert numbers("BuildFailureWeigher", table, MadeUp([1, 1, 1])) == [2, 0, 0]
    assert numbers("BuildFailureWeigher", table, MadeUp([1, 1, 1]), np.array([1])) == [0]
    assert numbers("BuildFailureWeigher", THREE, MadeUp([1, 1, 1])) is None


def test_metrics() -> None:
    table = table_of(
        [
            report("both", "n0", metrics={"heat": 20.0, "power": 300.0}),
            report("one", "n1", metrics={"heat": 20.0}),
            report("none", "n2"),
        ]
    )
    assert numbers("MetricsWeigher", table, MadeUp([1, 1, 1])) is None

    def weighed(ratios: dict[str, float], unavailable: float = -10000.0) -> list[float] | None:
        return numbers(
            "MetricsWeigher", table, MadeUp([1, 1, 1]), plugins=by_metrics(ratios, False, unavailable)
        )

    assert weighed({"heat": -1.0}) == [-20, -20, -10000]
    assert weighed({"heat": -1.0, "power": 0.5}) == [130, -10000, -10000]
    assert weighed({"power": 1.0}, -1.0) == [300, -1, -1]


def test_absent_metric_of_ratio_or_multiplier_0_adds_nothing() -> None:
    silent = HostAggregate("a", "a", {"metrics_weight_multiplier": "0"})
    table = table_of(
        [
            report("both", "n0", metrics={"heat": 20.0, "power": 300.0}),
            report("one", "n1", metrics={"heat": 20.0}),
            report("not weighed", "n2", metrics={"heat": 20.0}, aggregates=(silent,)),
        ]
    )
    for power, expected in ((0.0, [20, 20, 20]), (1.0, [320, -10000, 20])):
        ratios = {"heat": 1.0, "power": power}
        found = numbers("MetricsWeigher", table, MadeUp([1] * 3), plugins=by_metrics(ratios, False))
        assert found == expected


def test_required_metric_that_a_host_does_not_report_is_named_with_the_host() -> None:
    table = NodeTable([report("both", "n0", metrics={"heat": 20.0}), report("none", "n1")])
    wanted = {"plugins": by_metrics({"heat": 0.0})}
    with pytest.raises(CannotWeigh, match="host none does not report metric 'heat'"):
        numbers("MetricsWeigher", table, MadeUp([1, 1]), **wanted)
    assert numbers("MetricsWeigher", table, MadeUp([1, 1]), np.array([0]), **wanted) == [0]


def test_defaults_are_novas() -> None:
    assert {
        each.name: (each.multiplier_key, each.default_multiplier, each.minval, each.negated)
        for each in named_weighers(
            "RAMWeigher", "CPUWeigher", "DiskWeigher", "MetricsWeigher", "BuildFailureWeigher"
        )
    } == {
        "RAMWeigher": ("ram_weight_multiplier", 1.0, 0.0, False),
        "CPUWeigher": ("cpu_weight_multiplier", 1.0, 0.0, False),
        "DiskWeigher": ("disk_weight_multiplier", 1.0, 0.0, False),
        "MetricsWeigher": ("metrics_weight_multiplier", 1.0, -math.inf, False),
        "BuildFailureWeigher": ("build_failure_weight_multiplier", 1_000_000.0, -math.inf, True),
    }

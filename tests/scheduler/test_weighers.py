"""Each weigher's numbers."""

import numpy as np
import pytest

from roost.fleet.columns import Int64
from roost.scheduler import plugins as found
from roost.scheduler.hosts import HostTable
from roost.scheduler.labels import Indexes
from roost.scheduler.offers import HostView, Offers
from support.clouds import report
from support.offering import MadeUp, question


class Levels(MadeUp):
    """Each host has 100 of everything; host i uses i of VCPU, 10·i of MEMORY_MB, 20·i of DISK_GB."""

    def __init__(self, count: int) -> None:
        super().__init__([1] * count)

    def _sums(self, resource_class: str) -> tuple[Int64, Int64]:
        each = {"VCPU": 1, "MEMORY_MB": 10, "DISK_GB": 20}[resource_class]
        return np.full(len(self.index), 100), each * self.index


def numbers(
    name: str, table: HostTable, offers: Offers, chosen: Indexes | None = None, **options: object
) -> list[float] | None:
    [weigher] = found.weighers([name])
    raw = weigher.raw(HostView(table, offers, chosen), question(**options))  # type: ignore[arg-type]
    return None if raw is None else raw.tolist()


THREE = HostTable(report(f"host{number}", f"n{number}") for number in range(3))


@pytest.mark.parametrize(
    ("name", "expected"), [("cpu", [100, 99, 98]), ("ram", [100, 90, 80]), ("disk", [100, 80, 60])]
)
def test_free_resources(name: str, expected: list[float]) -> None:
    assert numbers(name, THREE, Levels(3)) == expected
    assert numbers(name, THREE, Levels(3), np.array([2, 0])) == [expected[2], expected[0]]


def test_build_failures() -> None:
    table = HostTable([report("a", "n0", failed_builds=2), report("b", "n1"), report("c", "n2")])
    assert numbers("build_failure", table, MadeUp([1, 1, 1])) == [-2, 0, 0]
    assert numbers("build_failure", table, MadeUp([1, 1, 1]), np.array([1])) == [0]
    assert numbers("build_failure", THREE, MadeUp([1, 1, 1])) is None


def test_metrics() -> None:
    table = HostTable(
        [
            report("both", "n0", metrics={"heat": 20.0, "power": 300.0}),
            report("one", "n1", metrics={"heat": 20.0}),
            report("none", "n2"),
        ]
    )
    offers = MadeUp([1, 1, 1])
    assert numbers("metrics", table, offers) is None
    assert numbers("metrics", table, offers, metrics_weights={"heat": -1.0}) == [-20, -20, -10000]
    assert numbers("metrics", table, offers, metrics_weights={"heat": -1.0, "power": 0.5}) == [
        130,
        -10000,
        -10000,
    ]
    assert numbers("metrics", table, offers, metrics_weights={"power": 1.0}, weight_of_unavailable=-1.0) == [
        300,
        -1,
        -1,
    ]


def test_defaults_are_novas() -> None:
    assert {
        each.name: (each.multiplier_key, each.default_multiplier)
        for each in found.weighers(["ram", "cpu", "disk", "metrics", "build_failure"])
    } == {
        "ram": ("ram_weight_multiplier", 1.0),
        "cpu": ("cpu_weight_multiplier", 1.0),
        "disk": ("disk_weight_multiplier", 1.0),
        "metrics": ("metrics_weight_multiplier", 1.0),
        "build_failure": ("build_failure_weight_multiplier", 1_000_000.0),
    }

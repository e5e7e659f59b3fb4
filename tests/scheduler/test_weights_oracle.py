"""Weights compared with an oracle: the rules of Nova's weigher documentation, written down host by host.

The oracle knows nothing of arrays, views or scales. It works on one host after the other.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roost.fleet.columns import Float64
from roost.model.aggregate import HostAggregate
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.pool.weights import HostWeights
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest
from support.clouds import report, table_of
from support.offering import MadeUp, plugins, scheduling_request


@dataclass
class Weigher:
    """A weigher with a number for each host."""

    name: str
    numbers: list[float]
    minval: float | None
    negated: bool
    default_multiplier: float

    @property
    def multiplier_key(self) -> str:
        return f"{self.name}_weight_multiplier"

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        return np.array(self.numbers)[hosts.index]


def expected(weighers: list[Weigher], metadata: list[list[dict[str, str]]], hosts: list[int]) -> list[float]:
    """The weight of each of ``hosts``. ``metadata``: of the aggregates of each host."""
    totals = [0.0] * len(hosts)
    if len(hosts) < 2:
        return totals
    for weigher in weighers:
        numbers = [weigher.numbers[host] for host in hosts]
        if weigher.minval is not None:
            numbers = [max(number, weigher.minval) for number in numbers]
        low = min(numbers) if weigher.minval is None else weigher.minval
        high = max(numbers)
        for place, number in enumerate(numbers):
            normalised = 0.0 if high == low else (number - low) / (high - low)
            multiplier = multiplier_of(weigher, metadata[hosts[place]])
            totals[place] += multiplier * normalised
    return totals


def multiplier_of(weigher: Weigher, aggregates: list[dict[str, str]]) -> float:
    """Of one host: the least of its aggregates' numbers; if one is no number, the configured one."""
    values = [each[weigher.multiplier_key] for each in aggregates if weigher.multiplier_key in each]
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        numbers = [weigher.default_multiplier]
    return -min(numbers) if weigher.negated else min(numbers)


HOSTS = 6
NAMES = ("one", "two", "three")
small = st.sampled_from([-20.0, -3.0, -1.0, 0.0, 0.5, 1.0, 7.0, 100.0])
a_weigher = st.builds(
    Weigher,
    st.sampled_from(NAMES),
    st.lists(small, min_size=HOSTS, max_size=HOSTS),
    st.sampled_from([None, 0.0, 0.0, 5.0]),
    st.booleans(),
    st.sampled_from([1.0, -1.5, 0.0, 1e6]),
)
an_aggregate = st.dictionaries(
    st.sampled_from([f"{name}_weight_multiplier" for name in NAMES]),
    st.sampled_from(["2", "-0.5", "0", "many", "nan", "1,2", ""]),
    max_size=2,
)


@given(
    st.lists(a_weigher, min_size=1, max_size=3),
    st.lists(st.lists(an_aggregate, max_size=2), min_size=HOSTS, max_size=HOSTS),
    st.sets(st.integers(0, HOSTS - 1), min_size=1),
    st.sets(st.integers(0, HOSTS - 1)),
)
def test_weights_are_those_of_the_oracle(
    weighers: list[Weigher], metadata: list[list[dict[str, str]]], hosts: set[int], out: set[int]
) -> None:
    table = table_of(
        report(
            f"host{number}",
            f"node{number}",
            aggregates=tuple(
                HostAggregate(f"agg{number}-{each}", "name", values)
                for each, values in enumerate(metadata[number])
            ),
        )
        for number in range(HOSTS)
    )
    allowed = np.isin(np.arange(HOSTS), [*hosts])
    weighing = HostWeights(
        table,
        MadeUp([1] * HOSTS),
        allowed,
        plugins(weighers=weighers).weighers,
        scheduling_request(),
        GroupPlacement(),
    )
    compare(weighing, weighers, metadata, allowed)
    fewer = allowed & ~np.isin(np.arange(HOSTS), [*out])
    compare(weighing.narrowed(fewer), weighers, metadata, fewer)


def compare(weighing: HostWeights, weighers: list[Weigher], metadata: Any, allowed: Any) -> None:
    hosts = np.flatnonzero(allowed).tolist()
    wanted = expected(weighers, metadata, hosts)
    assert [weighing.weight(host) for host in hosts] == wanted
    best = sorted(zip(hosts, wanted, strict=True), key=lambda each: (-each[1], each[0]))
    assert weighing.best(HOSTS).tolist() == [host for host, _ in best]

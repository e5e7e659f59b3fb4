"""Weights: normalised, multiplied, summed; and kept right from claim to claim."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.fleet.columns import Float64
from roost.model.aggregate import HostAggregate
from roost.model.allocation import Candidate
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import SchedulerFault
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugins import Weigher
from roost.scheduler.pool.weights import HostWeights
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest
from support.clouds import report, table_of
from support.offering import Free, MadeUp, by_metrics, hosts, named_weighers, plugins, scheduling_request


class Numbers:
    """Weighs host i by the i-th of some numbers."""

    name = "numbers"
    multiplier_key = "numbers_weight_multiplier"
    default_multiplier = 1.0

    def __init__(self, *numbers: float, minval: float | None = None, negated: bool = False) -> None:
        self._numbers = np.array(numbers)
        self.minval = minval
        self.negated = negated

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        return self._numbers[hosts.index]


class Silent:
    name = "silent"
    multiplier_key = "silent_weight_multiplier"
    default_multiplier = 1.0

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        return None


def weights(
    weighers: Sequence[object], table: NodeTable, allowed: list[bool] | None = None, **options: object
) -> list[float]:
    may = np.array([True] * len(table) if allowed is None else allowed)
    weighing = HostWeights(
        table,
        MadeUp([1] * len(table)),
        may,
        plugins(weighers=weighers).weighers,
        scheduling_request(**options),
        GroupPlacement(),
    )  # type: ignore[arg-type]
    return [weighing.weight(position) for position in np.flatnonzero(may).tolist()]


def test_numbers_are_stretched_between_the_least_and_the_greatest() -> None:
    assert weights([Numbers(10, 30, 20)], hosts(3)) == [0.0, 1.0, 0.5]


def test_equal_numbers_count_nothing() -> None:
    assert weights([Numbers(7, 7, 7), Numbers(1, 3, 2)], hosts(3)) == [0.0, 1.0, 0.5]


def test_only_hosts_in_play_are_stretched_between() -> None:
    assert weights([Numbers(0, 30, 20)], hosts(3), [False, True, True]) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((10, 30, 20), [1 / 3, 1.0, 2 / 3]),
        ((7, 7, 7), [1.0, 1.0, 1.0]),
        ((-5, 10, 5), [0.0, 1.0, 0.5]),
        ((-5, -1, 0), [0.0, 0.0, 0.0]),
        ((math.nan, 4, 2), [0.0, 1.0, 0.5]),
    ],
)
def test_numbers_with_a_minval_are_raised_to_it_and_normalised_from_it(
    numbers: tuple[float, ...], expected: list[float]
) -> None:
    assert weights([Numbers(*numbers, minval=0.0)], hosts(3)) == expected


def test_host_that_is_alone_is_not_weighed() -> None:
    def never(hosts: HostView, request: SchedulingRequest) -> Float64 | None:
        raise AssertionError("a weigher was asked")

    weigher = Numbers(7, 9, minval=0.0)
    both = HostWeights(
        hosts(2),
        MadeUp([1, 1]),
        np.array([True, True]),
        [Weigher.of(weigher)],
        scheduling_request(),
        GroupPlacement(),
    )
    assert both.weight(0) == 7 / 9
    assert both.narrowed(np.array([True, False])).weight(0) == 0.0
    weigher.raw = never  # type: ignore[method-assign]
    assert weights([weigher], hosts(2), [True, False]) == [0.0]


def test_weigher_with_nothing_to_say() -> None:
    assert weights([Silent(), Numbers(1, 2)], hosts(2)) == [0.0, 1.0]


def test_multiplier_of_the_options() -> None:
    numbers, other = Numbers(0, 10), Numbers(4, 0)
    assert weights([numbers, other], hosts(2), multipliers={"numbers": -2.0}) == [-2.0, -2.0]


def test_multiplier_of_aggregates_is_the_least_of_them_if_all_are_numbers() -> None:
    def aggregate(value: str) -> HostAggregate:
        return HostAggregate(value, value, {"numbers_weight_multiplier": value})

    table = table_of(
        [
            report("none", "node0"),
            report("one", "node1", aggregates=(aggregate("5"),)),
            report("two", "node2", aggregates=(aggregate("5"), aggregate("-3"))),
            report("no number", "node3", aggregates=(aggregate("many"), aggregate("nan"))),
            report("half", "node4", aggregates=(aggregate("inf"), aggregate("7"))),
            report("joined", "node5", aggregates=(aggregate("5,7"),)),
        ]
    )
    least = Numbers(10, 10, 10, 10, 10, 10)
    assert weights([Numbers(10, 10, 10, 10, 10, 0)], table)[:5] == [1.0, 5.0, -3.0, 1.0, 1.0]
    assert weights([Numbers(0, 0, 0, 0, 0, 10)], table)[5] == 1.0
    assert weights([least], table) == [0.0] * 6
    assert weights([Numbers(10, 10, 10, 10, 10, 0, negated=True)], table)[:4] == [-1.0, -5.0, 3.0, -1.0]


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_counts_as_0_and_spoils_nothing(odd: float) -> None:
    assert weights([Numbers(-10, odd, 10)], hosts(3)) == [0.0, 0.5, 1.0]


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=20),
    st.integers(1, 25),
    st.sets(st.integers(0, 19)),
    st.sets(st.integers(0, 19)),
)
def test_best_are_those_of_a_full_sort(
    numbers: list[float], among: int, out: set[int], idle: set[int]
) -> None:
    n = len(numbers)
    allowed = np.array([index not in out for index in range(n)])
    playing = np.array([index not in idle for index in range(n)])
    weighing = HostWeights(
        hosts(n),
        MadeUp([1] * n),
        allowed,
        [Weigher.of(Numbers(*numbers))],
        scheduling_request(),
        GroupPlacement(),
    )
    may = [index for index in range(n) if allowed[index] and playing[index]]
    expected = sorted(may, key=lambda index: (-numbers[index], index))[:among]
    assert weighing.best(among, playing).tolist() == expected
    if not idle:
        assert weighing.best(among).tolist() == expected


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.sets(st.integers(0, 11), max_size=2)), max_size=20),
    st.sets(st.integers(0, 11)),
    st.sampled_from([1.0, -1.0, 0.3]),
)
def test_after_claims_and_hosts_that_fall_out_weights_are_those_of_weighing_again(
    free: list[int], history: list[tuple[int, set[int]]], out: set[int], multiplier: float
) -> None:
    n = len(free)
    allowed = np.array([index not in out for index in range(n)])
    aggregate = HostAggregate("a", "a", {"ram_weight_multiplier": "2.5", "free_weight_multiplier": "0.7"})
    table = table_of(
        report(
            f"host{index}",
            f"node{index}",
            failed_builds=index % 3,
            metrics={"heat": 7.0 * index},
            aggregates=(aggregate,) * (index % 2),
        )
        for index in range(n)
    )
    names = ("CPUWeigher", "RAMWeigher", "MetricsWeigher", "BuildFailureWeigher")
    weighers = plugins(
        weighers=[Free(), *named_weighers(*names, plugins=by_metrics({"heat": -0.1}))]
    ).weighers
    asked = scheduling_request(multipliers={"CPUWeigher": multiplier})
    offers = MadeUp(free)
    weighing = HostWeights(table, offers, allowed, weighers, asked, GroupPlacement())
    for claim, gone in history:
        allowed = allowed & np.array([index not in gone for index in range(n)])
        before = weighing
        told = [before.weight(position) for position in np.flatnonzero(before.allowed).tolist()]
        weighing = before.narrowed(allowed)
        assert [before.weight(each) for each in np.flatnonzero(before.allowed).tolist()] == told
        if claim < n:
            candidate = Candidate(f"node{claim}", {f"node{claim}": {"VCPU": 1}}, {})
            weighing.claimed(offers.claimed(candidate))
        again = HostWeights(table, offers, allowed, weighers, asked, GroupPlacement())
        assert weighing.best(n).tolist() == again.best(n).tolist()
        for position in np.flatnonzero(allowed).tolist():
            assert weighing.weight(position) == again.weight(position), "not to the last bit"


def test_no_host_at_all() -> None:
    weighing = HostWeights(
        hosts(2),
        MadeUp([1, 1]),
        np.array([False, False]),
        [Weigher.of(Free())],
        scheduling_request(),
        GroupPlacement(),
    )
    assert weighing.best(1, np.array([True, True])).tolist() == []
    assert weighing.best(5, np.array([True, True])).tolist() == []
    weighing.claimed([0])


def test_weigher_that_falls_silent_is_named() -> None:
    class Fickle(Free):
        name = "fickle"

        def raw(
            self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement
        ) -> Float64 | None:
            return super().raw(hosts, request, progress) if len(hosts) > 1 else None

    weighing = HostWeights(
        hosts(2),
        MadeUp([1, 2]),
        np.array([True, True]),
        [Weigher.of(Fickle())],
        scheduling_request(),
        GroupPlacement(),
    )
    with pytest.raises(SchedulerFault, match="weigher fickle failed: it had numbers"):
        weighing.claimed([0])


class Neighbours:
    """Weighs a host by the members of the group in its rack: hosts 0 and 1, and host 2."""

    name = "neighbours"
    multiplier_key = "neighbours_weight_multiplier"
    default_multiplier = 1.0
    reads_other_hosts = True

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        counts = np.zeros(2)
        for index, members in progress.members.items():
            counts[index // 2] += members
        return counts[hosts.index // 2]


def test_a_claim_counts_in_its_rack_also_where_its_own_host_falls_out() -> None:
    progress = GroupPlacement()
    weighing = HostWeights(
        hosts(3),
        MadeUp([1] * 3),
        np.ones(3, np.bool_),
        [Weigher.of(Neighbours())],
        scheduling_request(),
        progress,
    )
    progress.members[0] += 1
    fewer = weighing.narrowed(np.array([False, True, True]))
    fewer.claimed([0])
    assert [fewer.weight(1), fewer.weight(2)] == [1.0, 0.0]

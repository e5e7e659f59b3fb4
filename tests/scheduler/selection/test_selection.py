"""The selection: what it picks, what it claims, and what it says when it cannot."""

import random
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.fleet.columns import Bools
from roost.model.spec import ServerGroup
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.pool import fresh_pool
from roost.scheduler.pool.weights import HostWeights
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest
from roost.scheduler.selection.outcome import Claim
from support.clouds import spec
from support.offering import (
    Free,
    MadeUp,
    Only,
    driven,
    hosts,
    named_filters,
    named_weighers,
    no_chance,
    plugins,
    scheduling_request,
    select,
    where,
)


def test_picks_the_heaviest_host() -> None:
    outcome, claims = driven(select(scheduling_request(), hosts(3), MadeUp([2, 5, 4]), plugins(), no_chance))
    assert where(outcome) == ["host1"]
    assert [claim.candidate.root for claim in claims] == ["node1"]
    assert outcome.refusal is None


def test_of_equal_hosts_the_one_with_the_lower_index() -> None:
    outcome, _ = driven(select(scheduling_request(), hosts(4), MadeUp([1, 5, 5, 5]), plugins(), no_chance))
    assert where(outcome) == ["host1"]


def test_claims_of_the_run_count_for_its_later_instances() -> None:
    outcome, _ = driven(select(scheduling_request(4), hosts(2), MadeUp([3, 2]), plugins(), no_chance))
    assert where(outcome) == ["host0", "host0", "host1", "host0"]


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=8),
    st.sets(st.integers(0, 7)),
    st.integers(1, 4),
    st.integers(1, 5),
    st.randoms(use_true_random=False),
)
def test_any_pick_is_allowed_and_among_the_best(
    free: list[int], allowed: set[int], count: int, subset: int, chance: random.Random
) -> None:
    asked = scheduling_request(count, min_count=1, host_subset_size=subset)
    offers = MadeUp(free)
    selecting = select(asked, hosts(len(free)), offers, plugins(Only(*allowed)), chance.randrange)
    left = dict(enumerate(free))

    def check(claim: Claim) -> None:
        picked = int(claim.candidate.root.removeprefix("node"))
        assert picked in allowed, "a host was picked that a filter had left out"
        may = [index for index in left if index in allowed and left[index]]
        best = sorted(may, key=lambda index: (-left[index], index))[:subset]
        assert picked in best, "a host was picked that is not among the best"
        left[picked] -= 1

    outcome, claims = driven(selecting, check)
    room = sum(free[index] for index in allowed if index < len(free))
    assert len(claims) == len(outcome.destinations) == min(count, room)


def test_subset_leaves_the_choice_to_chance() -> None:
    asked = scheduling_request(host_subset_size=3)
    picked = set()
    for seed in range(50):
        chance = random.Random(seed)
        outcome, _ = driven(select(asked, hosts(5), MadeUp([1, 9, 8, 7, 2]), plugins(), chance.randrange))
        picked.update(where(outcome))
    assert picked == {"host1", "host2", "host3"}


def test_refused_claim_goes_to_the_next_candidate_and_then_to_the_next_host() -> None:
    offers = MadeUp([3, 5], sizes=[1, 2])
    outcome, claims = driven(
        select(scheduling_request(), hosts(2), offers, plugins(), no_chance),
        lambda claim: "too late" if claim.candidate.root == "node1" else None,
    )
    ways = [(claim.candidate.root, claim.candidate.mappings[""]) for claim in claims]
    assert ways == [("node1", ["way0"]), ("node1", ["way1"]), ("node0", ["way0"])]
    assert where(outcome) == ["host0"]
    assert [(tried.host, tried.refusal) for tried in outcome.tries] == [
        ("host1", "too late"),
        ("host1", "too late"),
        ("host0", None),
    ]


def test_host_that_refused_is_not_asked_again_for_the_next_instance() -> None:
    _, claims = driven(
        select(scheduling_request(3), hosts(2), MadeUp([3, 9]), plugins(), no_chance),
        lambda claim: "no" if claim.candidate.root == "node1" else None,
    )
    assert [claim.candidate.root for claim in claims] == ["node1", "node0", "node0", "node0"]


def test_host_with_one_candidate_refused_is_asked_again() -> None:
    _, claims = driven(
        select(scheduling_request(2), hosts(2), MadeUp([1, 9], sizes=[1, 2]), plugins(), no_chance),
        lambda claim: "no" if claim.candidate.mappings[""] == ["way0"] else None,
    )
    assert [claim.candidate.root for claim in claims] == ["node1"] * 4


@pytest.mark.parametrize(
    ("count", "min_count", "placed"), [(3, 3, 0), (3, 2, 2), (3, 1, 2), (2, 2, 2), (2, 1, 2)]
)
def test_min_count_or_nothing(count: int, min_count: int, placed: int) -> None:
    outcome, _ = driven(
        select(scheduling_request(count, min_count=min_count), hosts(2), MadeUp([1, 1]), plugins(), no_chance)
    )
    assert [each.instance for each in outcome.destinations] == [f"i{number}" for number in range(placed)]
    expected = "only 2 of 3 instances fit: every host left is full" if count == 3 else None
    assert outcome.refusal == expected


# Refusals


def refusal_of(*filters: Only, free: tuple[int, ...] = (1, 1), refuse: str | None = None) -> str | None:
    asked = select(scheduling_request(), hosts(2), MadeUp(free), plugins(*filters), no_chance)
    return driven(asked, lambda _: refuse)[0].refusal


def test_refusal_names_the_step_that_left_no_host() -> None:
    assert refusal_of(Only(0, 1), Only(name="second"), Only(name="third")) == "no host left after second"


def test_refusal_of_placement() -> None:
    assert refusal_of(free=()) == "placement has no candidates on the hosts that are known"
    outcome, _ = driven(select(scheduling_request(), hosts(0), MadeUp([]), plugins(), no_chance))
    assert outcome.refusal == "no host is known"


def test_refusal_of_every_claim_tells_the_last_one() -> None:
    assert refusal_of(refuse="no room") == "every claim was refused, the last one on host1: no room"


def test_refusal_when_the_group_is_in_the_way_of_a_later_instance() -> None:
    group = ServerGroup("g", "anti-affinity")
    outcome, _ = driven(
        select(
            scheduling_request(3, of=spec(group=group)),
            hosts(2),
            MadeUp([9, 9]),
            plugins(*named_filters("ServerGroupAntiAffinityFilter")),
            no_chance,
        )
    )
    assert outcome.refusal == "only 2 of 3 instances fit: no host left after ServerGroupAntiAffinityFilter"


def test_steps_say_how_many_hosts_each_left() -> None:
    asked = scheduling_request(of=spec(ignore_hosts=frozenset({"host0", "unheard of"})))
    outcome, _ = driven(
        select(asked, hosts(5), MadeUp([1, 1, 1, 1]), plugins(Only(0, 1, 2), Only(2)), no_chance)
    )
    assert [(step.name, step.left) for step in outcome.steps] == [
        ("hosts known", 5),
        ("hosts with candidates", 4),
        ("ignore_hosts", 3),
        ("only", 2),
        ("only", 1),
    ]


def test_steps_are_those_of_the_first_instance() -> None:
    group = spec(group=ServerGroup("g", "anti-affinity"))
    chosen = plugins(*named_filters("ServerGroupAntiAffinityFilter"))
    outcome, _ = driven(
        select(scheduling_request(2, of=group), hosts(3), MadeUp([1, 1, 1]), chosen, no_chance)
    )
    assert [(step.name, step.left) for step in outcome.steps] == [
        ("hosts known", 3),
        ("hosts with candidates", 3),
        ("ServerGroupAntiAffinityFilter", 3),
    ]


# Server groups


def placed_in_group(policy: str, members: tuple[str, ...], count: int, most: int = 1) -> list[str]:
    group = ServerGroup("g", policy, members, most)
    filters = named_filters("ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter")
    outcome, _ = driven(
        select(
            scheduling_request(count, of=spec(group=group), min_count=1),
            hosts(3),
            MadeUp([9, 8, 7]),
            plugins(*filters),
            no_chance,
        )
    )
    return where(outcome)


def test_anti_affinity_counts_members_and_the_runs_own_claims() -> None:
    assert placed_in_group("anti-affinity", (), 4) == ["host0", "host1", "host2"]
    assert placed_in_group("anti-affinity", ("host1",), 4) == ["host0", "host2"]
    assert (
        placed_in_group("anti-affinity", ("host1", "elsewhere"), 4, most=2)
        == [
            "host0",
            "host0",
            "host1",
            "host2",
            "host2",
        ][:4]
    )


def test_affinity_keeps_to_the_hosts_of_members() -> None:
    assert placed_in_group("affinity", (), 3) == ["host0"] * 3
    assert placed_in_group("affinity", ("host2",), 2) == ["host2"] * 2
    assert placed_in_group("affinity", ("elsewhere",), 1) == []


# What plugins are told


class Curious:
    """Notes what it is shown; lets everything through."""

    name = "curious"

    def __init__(self, depends_on_claims: bool) -> None:
        self.depends_on_claims = depends_on_claims
        self.seen: list[tuple[int, dict[int, int]]] = []

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        self.seen.append((len(hosts), dict(progress.members)))
        return np.ones(len(hosts), dtype=np.bool_)


def test_filters_are_asked_once_or_before_each_claim_and_not_when_nothing_is_left() -> None:
    once, again = Curious(False), Curious(True)
    driven(
        select(
            scheduling_request(3), hosts(3), MadeUp([5, 5, 5]), plugins(Only(0, 2), once, again), no_chance
        )
    )
    assert once.seen == [(2, {})]
    assert again.seen == [(2, {})] * 3
    unasked = Curious(False)
    driven(select(scheduling_request(), hosts(3), MadeUp([5, 5, 5]), plugins(Only(), unasked), no_chance))
    assert unasked.seen == []


def test_filters_are_told_of_the_members_of_the_group() -> None:
    again = Curious(True)
    group = spec(group=ServerGroup("g", "anti-affinity", ("host2",)))
    driven(select(scheduling_request(2, of=group), hosts(3), MadeUp([5, 5, 5]), plugins(again), no_chance))
    assert again.seen == [(3, {2: 1}), (3, {2: 1, 0: 1})]


def test_without_weighers_the_first_host_is_as_good_as_any() -> None:
    outcome, _ = driven(
        select(scheduling_request(), hosts(3), MadeUp([1, 2, 3]), plugins(weighers=()), no_chance)
    )
    assert where(outcome) == ["host0"]
    assert outcome.destinations[0].selected.weight == 0.0


def test_weights_are_told_as_they_were_when_it_was_chosen() -> None:
    outcome, _ = driven(
        select(scheduling_request(num_alternates=2), hosts(3), MadeUp([2, 10, 6]), plugins(), no_chance)
    )
    [one] = outcome.destinations
    assert one.selected.weight == 1.0
    assert [(other.host, other.weight) for other in one.alternates] == [("host2", 0.5), ("host0", 0.0)]


# Why it may be quick


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=8),
    st.integers(1, 12),
    st.sampled_from([None, "affinity", "anti-affinity"]),
    st.sampled_from([1.0, -1.0]),
    st.integers(0, 2),
    st.integers(1, 3),
)
def test_choices_are_those_of_weighing_all_hosts_again_for_each_instance(
    free: list[int], count: int, policy: str | None, multiplier: float, alternates: int, subset: int
) -> None:
    group = None if policy is None else ServerGroup("g", policy, (), 2)
    asked = scheduling_request(
        count,
        of=spec(group=group),
        num_alternates=alternates,
        min_count=1,
        multipliers={"free": multiplier},
        host_subset_size=subset,
    )
    filters = named_filters("ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter")
    chosen = plugins(*filters, weighers=[Free(), *named_weighers("CPUWeigher")])

    def run() -> object:
        chance = random.Random(5).randrange
        outcome, claims = driven(select(asked, hosts(len(free)), MadeUp(free), chosen, chance))
        return outcome.destinations, outcome.tries, outcome.refusal, claims

    quick = run()
    with patch.object(fresh_pool, "HostWeights", Afresh):
        assert run() == quick


class Afresh(HostWeights):
    """Weighs all hosts again whenever something may have changed."""

    def __init__(self, *known: Any) -> None:
        super().__init__(*known)
        self._known = known

    def narrowed(self, allowed: Bools) -> HostWeights:
        table, offers, _, *rest = self._known
        return Afresh(table, offers, allowed, *rest)

    def claimed(self, positions: Sequence[int]) -> None:
        pass

"""The bounds of a run: claims of an instance, candidates of a host, seconds."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from roost.scheduler.selection.outcome import BOUND, CLAIMS, Outcome
from roost.scheduler.selection.selection import RandomDraw
from support.offering import MadeUp, driven, hosts, no_chance, plugins, scheduling_request, select, where


def refusing(*roots: str) -> Any:
    return lambda claim: "too late" if claim.candidate.root in roots else None


def run(free: list[int], refuse: Any, *, sizes: list[int] | None = None, **bounds: Any) -> Any:
    offers = MadeUp(free, sizes)
    outcome, claims = driven(
        select(scheduling_request(**bounds), hosts(len(free)), offers, plugins(), no_chance), refuse
    )
    return outcome, [(claim.candidate.root, *claim.candidate.mappings[""]) for claim in claims]


def test_refusal_names_the_bound_of_claims_and_what_was_tried() -> None:
    outcome, claims = run([3, 5, 4], lambda _: "too late", max_claims_per_instance=2)
    assert claims == [("node1", "way0"), ("node2", "way0")]
    assert outcome.cause == BOUND
    assert outcome.refusal == (
        "max_claims_per_instance=2 is met: 2 claims on 2 hosts were refused, the last one on host2: too late"
    )
    assert outcome.destinations == ()


def test_every_candidate_of_a_host_counts_as_a_claim() -> None:
    outcome, claims = run(
        [3, 5], lambda _: "too late", sizes=[1, 3], max_claims_per_instance=2, max_candidates_per_host=0
    )
    assert claims == [("node1", "way0"), ("node1", "way1")]
    assert "2 claims on 1 hosts" in outcome.refusal


def test_claims_are_counted_for_each_instance_anew() -> None:
    outcome, claims = run(
        [9, 5, 4], refusing("node0"), count=3, max_claims_per_instance=2, max_candidates_per_host=0
    )
    assert where(outcome) == ["host1", "host1", "host2"]
    assert len(claims) == 4


def test_after_so_many_candidates_of_a_host_the_next_one_is_tried() -> None:
    outcome, claims = run([3, 5], refusing("node1"), sizes=[1, 9], max_candidates_per_host=2)
    assert claims == [("node1", "way0"), ("node1", "way1"), ("node0", "way0")]
    assert where(outcome) == ["host0"]


def test_refusal_says_that_candidates_were_left_untried() -> None:
    outcome, _ = run([3, 5], lambda _: "no", sizes=[2, 9], max_candidates_per_host=2)
    assert outcome.cause == CLAIMS
    assert outcome.refusal == (
        "every claim was refused, the last one on host0: no "
        "(max_candidates_per_host=2 left candidates of 1 hosts untried)"
    )


def test_zero_is_no_bound() -> None:
    outcome, claims = run(
        [200] * 150,
        refusing(*(f"node{host}" for host in range(149))),
        max_claims_per_instance=0,
        max_run_seconds=0.0,
    )
    assert where(outcome) == ["host149"]
    assert len(claims) == 150


def test_bound_with_min_count_met_leaves_what_was_placed() -> None:
    outcome = in_time(iter([0.0, 99.0]), count=3, min_count=1)
    assert where(outcome) == ["host0"]
    assert outcome.refusal == (
        "only 1 of 3 instances fit: max_run_seconds=60 is met: 0 claims on 0 hosts were refused"
    )


def in_time(clock: Iterator[float], **asked: Any) -> Outcome:
    last = [0.0]

    def monotonic() -> float:
        last[0] = next(clock, last[0])
        return last[0]

    timed = replace(scheduling_request(**asked), deadline=60.0, monotonic=monotonic)
    return driven(select(timed, hosts(2), MadeUp([9, 3]), plugins(), no_chance))[0]


def test_time_is_over_before_a_claim_is_tried() -> None:
    outcome = in_time(iter([60.0]))
    assert outcome.destinations == ()
    assert outcome.refusal == "max_run_seconds=60 is met: 0 claims on 0 hosts were refused"


def test_alternates_are_those_found_in_time() -> None:
    outcome = in_time(iter([0.0, 61.0]), num_alternates=1)
    assert (where(outcome), outcome.destinations[0].alternates) == (["host0"], ())


def test_the_same_seed_draws_the_same_numbers_in_every_version_of_python() -> None:
    assert [RandomDraw(5)(10) for _ in range(2)] == [6, 6]
    draw = RandomDraw(42)
    assert [draw(100) for _ in range(6)] == [63, 2, 27, 22, 73, 67]

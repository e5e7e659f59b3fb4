"""Queries get their share of the time beside writes, and no more."""

import random

import pytest

from roost.placement.queries.turns import (
    BURST_SECONDS,
    GRACE_SECONDS,
    MOST_DEBT_SECONDS,
    QueryPace,
    writer_busy,
)


@pytest.mark.parametrize("seed", range(30))
def test_queries_that_always_wait_take_their_share_of_the_time(seed: int) -> None:
    rng = random.Random(seed)
    share = rng.choice((0.1, 0.25, 0.5, 1.0))
    pacing, now, taken, longest = QueryPace(), 0.0, 0.0, 0.0
    for _ in range(1000):
        now += pacing.wait(now, share)
        assert pacing.wait(now, share) == pytest.approx(0.0, abs=1e-6)
        took = rng.choice((0.0001, 0.002, 0.05)) * rng.random()
        now += took
        taken, longest = taken + took, max(longest, took)
        pacing = pacing.spent(now, took, share)
        assert taken <= share * now + BURST_SECONDS + longest + 1e-9
    # Nor much less than it, when there are always queries.
    assert taken >= share * now / 2


@pytest.mark.parametrize("seed", range(10))
def test_a_pause_saves_no_more_than_a_burst(seed: int) -> None:
    rng = random.Random(seed)
    pacing = QueryPace().spent(rng.random(), rng.random(), 0.25)
    begun = 1e6
    for _ in range(1000):
        if pacing.wait(begun, 0.25):
            break
        pacing = pacing.spent(begun, 0.001, 0.25)
    else:
        raise AssertionError("queries never have to wait")
    assert 0 < pacing.wait(begun, 0.25) <= 0.001 / 0.25 + 1e-9
    assert pacing.saved == pytest.approx(0.0, abs=0.001 + 1e-9)


def test_queries_share_only_with_writes_under_way_and_those_that_follow_at_once() -> None:
    assert writer_busy(10.0, 1.0, 1)
    assert writer_busy(10.0, 10.0 - GRACE_SECONDS / 2, 0)
    assert not writer_busy(10.0, 10.0 - GRACE_SECONDS * 2, 0)


@pytest.mark.parametrize("seconds", [0.2, 48.0, 3600.0])
def test_whatever_took_long_delays_the_queries_after_it_by_a_bounded_time(seconds: float) -> None:
    pacing = QueryPace(0.0, 0.0).spent(seconds, seconds, 0.25)
    assert pacing.wait(seconds, 0.25) == pytest.approx(MOST_DEBT_SECONDS / 0.25)
    assert pacing.spent(seconds, 0.01, 0.25).wait(seconds, 0.25) == pytest.approx(MOST_DEBT_SECONDS / 0.25)

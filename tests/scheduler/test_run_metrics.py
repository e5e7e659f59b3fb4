"""What is counted of the runs of the scheduler."""

from collections.abc import Iterator

import pytest

from roost.model.record import Step
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import start_counting, stop_counting
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.pool.host_pool import KNOWN, OFFERED
from roost.scheduler.run_metrics import RunMetrics, removed_by
from roost.scheduler.selection.outcome import CLAIMS, FULL, ClaimAttempt, Outcome

FILTERS = ("ComputeFilter", "AvailabilityZoneFilter")


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    start_counting(metrics.CATALOGUE)
    yield
    stop_counting()


def test_a_filter_has_removed_what_the_step_before_it_had_more() -> None:
    steps = (
        Step(KNOWN, 9),
        Step("VCPU", 8),
        Step(OFFERED, 7),
        Step("ComputeFilter", 5),
        Step("AvailabilityZoneFilter", 5),
    )
    assert removed_by(steps, frozenset(FILTERS)) == {"ComputeFilter": 2, "AvailabilityZoneFilter": 0}


@pytest.mark.parametrize(
    ("cause", "counted"),
    [
        (KNOWN, "no_hosts"),
        (OFFERED, "placement"),
        ("ComputeFilter", "ComputeFilter"),
        (CLAIMS, "claims"),
        (FULL, "full"),
        ("ignore_hosts", "other"),
        ("a filter that is not configured", "other"),
    ],
)
def test_the_cause_of_a_refusal_is_from_a_bounded_set(cause: str, counted: str) -> None:
    RunMetrics(FILTERS).decided(Outcome((), (), (), "no host left", cause))
    assert metrics.REFUSALS.labels(counted).value == 1
    assert metrics.DECISIONS.labels("refused").value == 1


def test_attempts_are_counted_by_outcome() -> None:
    tries = (
        ClaimAttempt("i", "h1", "node", "c", 1.0, "full"),
        ClaimAttempt("i", "h2", "node", "c", 1.0, "full"),
        ClaimAttempt("i", "h3", "node", "c", 1.0, None),
    )
    RunMetrics(FILTERS).decided(Outcome((), tries, (), None))
    assert (metrics.ATTEMPTS.labels("refused").value, metrics.ATTEMPTS.labels("claimed").value) == (2, 1)
    assert metrics.DECISIONS.labels("placed").value == 1


@pytest.mark.parametrize(("error", "result"), [(BadRequestSpec(), "invalid"), (ValueError(), "failed")])
def test_errors_are_counted_and_raised(error: Exception, result: str) -> None:
    with pytest.raises(type(error)), RunMetrics(FILTERS).timed():
        raise error
    assert metrics.DECISIONS.labels(result).value == 1
    assert sum(metrics.DECISION_DURATION.labels().counts) == 1

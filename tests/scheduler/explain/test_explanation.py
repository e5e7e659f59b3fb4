"""What explanations say of random worlds is true: counts add up, and each relaxation works."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.scheduler import SchedulerOptions
from support.decided_worlds import OPTIONS
from support.decisions import Step, decisions, happenings, made, reports
from support.explaining import ExplainedWorld, greedy

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
_STEPS = st.lists(greedy() | greedy() | decisions() | happenings() | reports(), min_size=4, max_size=15)
CASES = (made(), _STEPS, st.sampled_from(OPTIONS))


def go(begin: Step, steps: list[Step], options: SchedulerOptions) -> None:
    world = ExplainedWorld(options)
    begin(world)
    for step in steps:
        step(world)


@settings(max_examples=15, deadline=None, suppress_health_check=SLOW)
@given(*CASES)
def test_reasons_are_true(begin: Step, steps: list[Step], options: SchedulerOptions) -> None:
    go(begin, steps, options)


@pytest.mark.nightly
@settings(max_examples=3_000, deadline=None, suppress_health_check=SLOW)
@given(*CASES)
def test_reasons_of_thousands_of_worlds_are_true(
    begin: Step, steps: list[Step], options: SchedulerOptions
) -> None:
    go(begin, steps, options)

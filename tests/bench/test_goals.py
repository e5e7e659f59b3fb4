"""Goals say whether they are reached, and the page of benchmarks has the table that is made from them."""

from pathlib import Path

import pytest

from roost.bench.goals import GOAL_TITLES, MACHINES, Calibration, Goal, figure_text
from roost.bench.report import replace_report
from roost.bench.suite import all_goals, goals_table

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def test_the_page_has_the_table_of_all_goals():
    page = PAGE.read_text()
    assert replace_report(page, "goals", goals_table()) == page, "run `roost bench render`"


@pytest.mark.parametrize("goal", all_goals(), ids=lambda goal: f"{goal.workload}, {goal.unit}")
def test_each_goal_has_one_threshold_and_a_calibration(goal: Goal):
    assert (goal.at_least is None) != (goal.at_most is None)
    assert goal.calibrations
    assert all(each.runs and each.machine in MACHINES for each in goal.calibrations)
    assert bool(goal.of) <= bool(goal.field)


def test_a_goal_is_told_with_its_calibrations():
    goal = Goal(
        workload="claims",
        unit="claims/s",
        at_least=5_000,
        calibrations=(Calibration((4_000, 5_000, 6_000), "SQLite"), Calibration((5_500,), machine="B")),
    )
    assert [dict(zip(GOAL_TITLES, line, strict=True)) for line in goal.lines()] == [
        {
            "workload": "claims",
            "database": "SQLite",
            "goal": "at least 5,000 claims/s",
            "mean": "5,000",
            "spread": "4,000 to 6,000",
            "machine": "A",
            "reached": "in 2 of 3 runs",
        },
        {
            "workload": "claims",
            "database": "–",
            "goal": "at least 5,000 claims/s",
            "mean": "5,500",
            "spread": "one run",
            "machine": "B",
            "reached": "yes",
        },
    ]


def test_a_threshold_is_reached_from_its_side():
    assert Goal(workload="", unit="", calibrations=(), at_least=2).is_reached(2)
    assert not Goal(workload="", unit="", calibrations=(), at_least=2).is_reached(1.9)
    assert Goal(workload="", unit="", calibrations=(), at_most=2).is_reached(2)
    assert not Goal(workload="", unit="", calibrations=(), at_most=2).is_reached(2.1)


def test_figures_have_three_digits_or_all_before_the_point():
    assert [figure_text(each) for each in (0.1254, 2.0, 10.249, 555.4, 10_245.0)] == [
        "0.125", "2", "10.2", "555", "10,245",
    ]  # fmt: skip

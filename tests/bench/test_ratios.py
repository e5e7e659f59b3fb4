"""Ratios that do not depend on the machine: of ways to do the same, and of small and large fleets.

Thresholds stand beside the workloads, far from the values of their calibrations. Only a change of the
algorithm exceeds them, such as a scan instead of an index, or a query for each host.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from roost.bench import decide, filters
from roost.bench.decisions import InMemoryDecisions
from roost.bench.filters import host_queries
from roost.bench.fleets import flat
from roost.bench.goals import Goal
from roost.bench.measurement import median_ms
from roost.bench.memory_fleet import build_fleet, build_node_table
from roost.bench.store import SqliteStore
from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch

SMALL, MEDIUM, LARGE = 1_000, 3_000, 10_000
ROUNDS = 5


@pytest.fixture(scope="module")
def fleets() -> dict[int, Fleet]:
    return {hosts: build_fleet(flat(hosts)) for hosts in (SMALL, LARGE)}


def reaches(value: float, goal: Goal) -> None:
    """The value reaches the goal."""
    assert goal.is_reached(value), goal.verdict(value)


def growth(measure: Callable[[int], float]) -> float:
    """Return the time on the large fleet divided by that on the small one, the least of some rounds."""
    return min(measure(LARGE) / measure(SMALL) for _ in range(ROUNDS))


def test_the_fleet_is_faster_than_sql_and_sql_than_a_loop(tmp_path: Path):
    found = filters.measure(SqliteStore(tmp_path), [flat(MEDIUM)], 0.2)
    assert not found.wrong
    [row] = found.rows
    reaches(row["where_ratio"], filters.WHERE_RATIO)
    reaches(row["loop_ratio"], filters.LOOP_RATIO)


def test_ten_candidates_of_ten_times_the_hosts_cost_far_less_than_ten_times(fleets: dict[int, Fleet]):
    def first_ten(hosts: int) -> float:
        fleet = fleets[hosts]
        ask = host_queries(fleet)[0]

        def find(_: object) -> None:
            found = iter(CandidateSearch(fleet, ask.query))
            for _ in range(10):
                next(found)

        return median_ms(find, 0.1, min_calls=3)

    reaches(growth(first_ten), filters.GROWTH)


def test_a_decision_of_a_known_shape_grows_far_less_than_the_fleet(fleets: dict[int, Fleet]):
    deciding = {
        hosts: InMemoryDecisions(fleet, build_node_table(flat(hosts)), alternates=2)
        for hosts, fleet in fleets.items()
    }
    reaches(growth(lambda hosts: float(np.median(deciding[hosts].run("repeated", 1, 0.2)))), decide.GROWTH)

"""The benchmark of decisions undoes its claims."""

from itertools import islice
from pathlib import Path

import pytest

from roost.bench import decide
from roost.bench.fleets import flat
from roost.bench.memory_fleet import build_fleet, build_host_table
from roost.bench.store import SqliteStore
from support.fleets import snapshot


@pytest.mark.parametrize("shapes", ["repeated", "fresh"])
@pytest.mark.parametrize("instances", [1, 3])
def test_decisions_leave_the_fleet_as_it_was(shapes: decide.Shapes, instances: int):
    plan = flat(60)
    fleet = build_fleet(plan)
    before = snapshot(fleet)
    times = decide.InMemoryDecisions(fleet, build_host_table(plan), alternates=2).run(shapes, instances, 0.2)
    assert len(times) > 5
    assert snapshot(fleet) == before


def test_a_fleet_that_is_full_ends_the_run():
    plan = flat(2)
    times = decide.InMemoryDecisions(build_fleet(plan), build_host_table(plan), alternates=0).run(
        "repeated", 1, 30.0
    )
    assert sum(times) < 30.0


def test_fresh_shapes_are_not_alike():
    shapes = [(f.vcpus, f.memory_mb, f.disk_gb) for f in islice(decide.flavors("fresh"), 5_000)]
    assert len(set(shapes)) == len(shapes)


def test_durable_decisions_are_counted(tmp_path: Path):
    [row] = decide.measure_durable(SqliteStore(tmp_path), [flat(60)], [8], 2, 0.3)
    assert row.store == "sqlite"
    assert row.per_second > 1

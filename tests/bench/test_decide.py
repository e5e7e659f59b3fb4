"""The benchmark of decisions undoes its claims, and asks what its options say."""

import json
from itertools import islice
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from roost.bench import decisions
from roost.bench.decide import decide as command
from roost.bench.decide import report_on
from roost.bench.errors import BenchError
from roost.bench.fleets import NODE_MEMORY_MB, devices, flat, nested, pinned
from roost.bench.memory_fleet import build_fleet, build_node_table
from roost.bench.requests import NEEDED_FLEETS, PROJECTS, BenchRequests, RequestKind, Shapes, flavors
from roost.bench.store import SqliteStore
from support.fleets import snapshot


@pytest.mark.parametrize("shapes", ["repeated", "fresh"])
@pytest.mark.parametrize("instances", [1, 3])
def test_decisions_leave_the_fleet_as_it_was(shapes: Shapes, instances: int):
    plan = flat(60)
    fleet = build_fleet(plan)
    before = snapshot(fleet)
    times = decisions.InMemoryDecisions(fleet, build_node_table(plan), alternates=2).run(
        shapes, instances, 0.2
    )
    assert len(times) > 5
    assert snapshot(fleet) == before


def test_a_fleet_that_is_full_ends_the_run():
    plan = flat(2)
    times = decisions.InMemoryDecisions(build_fleet(plan), build_node_table(plan), alternates=0).run(
        "repeated", 1, 30.0
    )
    assert sum(times) < 30.0


def test_fresh_shapes_are_not_alike():
    shapes = [(f.vcpus, f.memory_mb, f.disk_gb) for f in islice(flavors("fresh"), 5_000)]
    assert len(set(shapes)) == len(shapes)


def test_durable_decisions_are_counted(tmp_path: Path):
    row, recorded, beside, refused = decisions.measure_durable(
        SqliteStore(tmp_path), [flat(60)], [8], 2, 0.3, turns=2
    )
    assert row["store"] == "sqlite"
    assert row["per_second"] > 1
    assert (recorded["store"], recorded["per_second"] > 1) == ("sqlite, recorded", True)
    assert (beside["store"], beside["query"], beside["per_second"] > 1) == ("sqlite, refusals", "plain", True)
    assert (refused["store"], refused["query"], refused["concurrent"]) == ("sqlite, refusals", "refused", 1)
    assert all(each["processor_us"] > 0 for each in (row, recorded, beside))
    notes = report_on([row, recorded, beside, refused], 2, 0.3).notes
    assert [note.split(": ")[0] for note in notes] == [
        "flat, 60 hosts, sqlite, recorded, 8 at a time",
        "flat, 60 hosts, sqlite, refusals, 8 at a time",
    ]
    half = {**row, "store": "sqlite, recorded", "per_second": row["per_second"] / 2}
    (note,) = report_on([row, half], 2, 0.3).notes
    assert note.endswith(": 50% of the rate, +0 µs of the processor a decision.")


def test_a_fleet_that_is_full_is_no_measure_of_durable_decisions(tmp_path: Path):
    with pytest.raises(BenchError, match=r"has no room after [1-9].* decisions: measure a larger one"):
        decisions.measure_durable(SqliteStore(tmp_path), [flat(2)], [1], 0, 30.0)


@pytest.mark.parametrize("kind", get_args(RequestKind))
def test_each_kind_of_request_is_decided_on_trees_and_undone(kind: RequestKind):
    plan = {"pinned": pinned, "devices": devices}.get(NEEDED_FLEETS.get(kind, ""), nested)(40)
    fleet, table = build_fleet(plan), build_node_table(plan, PROJECTS if kind == "project" else 0)
    before = snapshot(fleet)
    deciding = decisions.InMemoryDecisions(fleet, table, 1, BenchRequests(kind, table, 10))
    assert len(deciding.run("repeated", 1, 0.2)) > 1
    assert snapshot(fleet) == before


def test_each_kind_of_request_is_what_its_name_says():
    table = build_node_table(flat(40))

    def specs(kind: RequestKind):
        return list(islice(BenchRequests(kind, table, 7).specs("repeated"), 3))

    assert all(len(set(spec.group.hosts)) == 7 for spec in specs("group") if spec.group is not None)
    assert len({spec.group.uuid for spec in specs("group") if spec.group}) == 3
    assert all(len(spec.ignore_hosts) == 7 for spec in specs("ignore"))
    assert len({spec.project_id for spec in specs("project")}) == 3
    assert len(BenchRequests("foreign", table, 7).weighers()) == 1
    assert "resources_NIC1:SRIOV_NET_VF" in specs("same_subtree")[0].flavor.extra_specs
    assert specs("numa_pci")[0].flavor.extra_specs.keys() > {"hw:numa_nodes", "pci_passthrough:alias"}
    assert specs("numa_trees")[0].flavor.extra_specs == {"hw:numa_nodes": "2"}
    assert all(spec.flavor.memory_mb > NODE_MEMORY_MB for spec in specs("split"))
    assert BenchRequests("splittable", table, 7).numa_model == "trees"


def test_a_fleet_too_small_for_the_size_is_refused():
    with pytest.raises(BenchError, match="10 hosts are too few for a size of 10"):
        decisions.measure([flat(10)], [1], 0, 0.1, ["ignore"], 10)


def test_the_command_measures_each_fleet_with_each_query():
    asked = ["--fleet", "flat", "--fleet", "nested", "--query", "plain", "--query", "same_subtree"]
    little = ["--hosts", "20", "--instances", "1", "--no-durable", "--duration", "0.05", "--json"]
    done = CliRunner().invoke(command, [*asked, *little])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    assert [(row["fleet"], row["query"], row["shapes"]) for row in rows] == [
        (fleet, query, shapes)
        for fleet, query in (("flat", "plain"), ("nested", "plain"), ("nested", "same_subtree"))
        for shapes in ("repeated", "fresh")
    ]
    assert all(row["hosts"] == 20 and row["instances"] == 1 and row["p50_ms"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("query", "fleet"), [("same_subtree", "nested"), ("numa", "pinned"), ("split", "nested")]
)
def test_some_queries_need_a_fleet(query: str, fleet: str):
    done = CliRunner().invoke(command, ["--query", query])
    assert done.exit_code == 2
    assert f"--query {query} needs --fleet {fleet}" in done.output

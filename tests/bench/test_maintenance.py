"""The benchmark of maintenance plans: the fleet of a trace at its fullest, and what it refuses in a plan."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from roost.bench.commands import bench
from roost.bench.maintenance import RULES, faults_of, fullest_fleet
from roost.bench.replay import azure
from roost.scheduler.maintenance.plan import MaintenancePlan, PlannedMove, Wave
from roost.scheduler.maintenance.planner import plan_maintenance

FILES = {
    azure.FLAVORS: "16,64 a\n32,64 b\n",
    azure.INTERVALS: "0 0\n300 1\n600 2\n",
    azure.ARRIVALS: "0 a,a,|,b,|\n300 a,a,a,|\n900 a,|\n",
    azure.ENDS: "0 U1,C0,|,C0,|\n300 C0,C0,C0,|\n900 C0,|\n",
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("rule", RULES)
def test_the_fleet_is_that_of_the_fullest_bin(trace: Path, rule: str) -> None:
    fleet = fullest_fleet(azure.read(trace, hosts=6), rule, 1.0, 1)
    # Of the first two one has gone when the last one comes: 32 and 5 of 16.
    assert sorted(guest.amounts["VCPU"] for guest in fleet.guests) == [16, 16, 16, 16, 16, 32]
    members = [(guest.group, guest.host) for guest in fleet.guests if guest.group is not None]
    assert len(members) == len(set(members)) == 4
    assert not faults_of(fleet, plan_maintenance(fleet))


def test_a_wrong_plan_is_found(trace: Path) -> None:
    fleet = fullest_fleet(azure.read(trace, hosts=6), "random", 1.0, 1)
    good = plan_maintenance(fleet)
    assert "is not empty" in str(faults_of(fleet, replace(good, waves=(Wave(good.waves[0].hosts, ()),))))
    first = fleet.guests[0]
    there = next(guest.host for guest in fleet.guests if guest.host != first.host)
    back = [
        Wave((first.host,), (PlannedMove(first.uuid, first.host, there),)),
        Wave((there,), (PlannedMove(first.uuid, there, first.host),)),
    ]
    found = str(faults_of(fleet, MaintenancePlan((*back, back[0]), (), 1, "")))
    assert "moves 3 times" in found and "3 waves, and the lower bound is 1" in found
    heavy = replace(
        fleet, hosts=tuple(replace(each, capacity={"VCPU": 1, "MEMORY_MB": 1}) for each in fleet.hosts)
    )
    assert "has no place" in str(faults_of(heavy, MaintenancePlan(tuple(back), (), 1, "")))


def test_the_command_reports_each_rule(trace: Path) -> None:
    ran = CliRunner().invoke(bench, ["maintenance", str(trace), "--hosts", "6", "--json"])
    assert ran.exit_code == 0, ran.output
    rows = json.loads(ran.stdout)["rows"]
    assert [row["rule"] for row in rows] == list(RULES)
    assert all(row["waves"] <= row["least_waves"] + 1 for row in rows)

"""`roost map` against a real service."""

import json
from collections.abc import Iterator
from functools import partial

import pytest

from roost.cli.fleet_map import answer
from roost.cli.fleet_map.answer import MapChoice, read_map
from roost.cli.service_client import RequestRefused
from roost.model.errors import OperatorError
from support.processes import RoostUp, run_roost

roost_map = partial(run_roost, "map")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a system of 120 hosts in two cells, of which one is full and one is disabled."""
    with RoostUp(tmp_path_factory.mktemp("up"), ["--hosts", "120", "--cells", "2"]) as running:
        running.wait_until_up()
        with running.client() as client:
            body = {"flavor": {"vcpus": 64, "memory_mb": 1024, "name": "whole"}}
            assert client.post("/v1/instances", json=body).status_code == 202
            assert client.put("/v1/hosts/host-0120", json={"enabled": False}).status_code == 200
            while client.get("/v1/capacity").json()["resources"]["VCPU"]["used"] < 64:
                pass
            while client.get("/v1/scheduler/hosts").json()["disabled"] < 1:
                pass
        yield f"http://127.0.0.1:{running.port}"


def test_the_fleet_is_drawn_by_cell(url: str) -> None:
    done = roost_map("--url", url)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "120 hosts: 119 up, 1 disabled; VCPU: 64 used of 7,680 (<1%); 7,680 in total"
    # The legend takes as many lines as it needs.
    legend = "  ".join(lines[1 : next(n for n, line in enumerate(lines) if line.startswith("zone"))])
    assert legend.startswith("▁ unused 118") and "█ full 1  ! disabled 1" in legend
    first, second = (line for line in lines if line.startswith("zone"))
    assert first.startswith("zone nova, cell cell1: 60 up; VCPU: ")
    assert second.startswith("zone nova, cell cell2: 59 up, 1 disabled; VCPU: ")
    assert (first + second).count("VCPU: 64 used of 3,840 (2%); 3,840 in total") == 1
    blocks = [line.split(" ", 1)[1] for line in lines if line.startswith("host-")]
    assert len("".join(blocks)) == 120


def test_choices(url: str) -> None:
    assert "60 hosts" in roost_map("--url", url, "--cell", "cell1").stdout
    assert "0 hosts" in roost_map("--url", url, "--zone", "nowhere").stdout
    assert "none free 1" in roost_map("--url", url, "--by", "free").stdout
    assert ". up 119  ! disabled 1" in roost_map("--url", url, "--by", "state").stdout
    assert "DISK_GB: 0 used" in roost_map("--url", url, "--class", "DISK_GB").stdout
    done = roost_map("--url", url, "--class", "CUSTOM_GPU")
    assert done.returncode == 2
    assert "no host has CUSTOM_GPU: there are DISK_GB, MEMORY_MB, VCPU" in done.stderr


def test_scripts_get_the_characters(url: str) -> None:
    found = json.loads(roost_map("--url", url, "--json").stdout)
    assert found["hosts"] == 120
    assert [len(each["levels"]) for each in found["groups"]] == [60, 60]
    assert sorted("".join(each["levels"] for each in found["groups"]))[-1] == "v"


class Paging:
    """A scheduler that answers a map in pages, of which some are gone."""

    def __init__(self, *gone: int) -> None:
        self._gone = [*gone]
        self.requests = 0

    def ask(self, method: str, path: str, query: dict[str, object]) -> object:
        self.requests += 1
        if self.requests in self._gone:
            raise RequestRefused(410, "begin anew")
        second = query.get("marker") is not None
        group = {"zone": "nova", "label": "", "hosts": 3, "up": 3, "disabled": 0, "down": 0, "amounts": None}
        groups = [
            {**group, "cell": "cell1", "levels": "v" if second else "0g", "states": "." if second else ".."}
        ]
        if second:
            groups.append({**group, "cell": "cell2", "levels": "000", "states": "..."})
        return {
            "version": 1,
            "layout": "a",
            "resource_class": "VCPU",
            "by": "used",
            "resource_classes": ["VCPU"],
            "most": None,
            "hosts": 6,
            "groups": groups,
            "next": None if second else "a-2",
        }


CHOICE = MapChoice("VCPU", "used")


def test_a_group_that_goes_over_two_pages_is_one() -> None:
    found = read_map(Paging(), CHOICE, None)  # type: ignore[arg-type]
    assert [(each.cell, each.levels, each.states) for each in found.groups] == [
        ("cell1", "0gv", "..."),
        ("cell2", "000", "..."),
    ]


def test_hosts_that_come_meanwhile_begin_the_map_anew() -> None:
    scheduler = Paging(2, 4)
    assert read_map(scheduler, CHOICE, None).hosts == 6  # type: ignore[arg-type]
    assert scheduler.requests == 6
    with pytest.raises(RequestRefused):
        read_map(Paging(*range(1, answer.ATTEMPTS + 1)), CHOICE, None)  # type: ignore[arg-type]


def test_a_class_that_nobody_has_is_no_empty_map() -> None:
    with pytest.raises(OperatorError, match="no host has GPU: there are VCPU"):
        read_map(Paging(), MapChoice("GPU", "used"), None)  # type: ignore[arg-type]

"""Answers are the same wherever they are computed, and each operation that can grow is bounded."""

from pathlib import Path
from typing import Any

import pytest

from roost.placement.commands.names import AddResourceClass
from roost.placement.queries import budget as budgets
from support.placement_api import uuid_of
from support.v1_api import V1Api

QUERY = (
    "resources=VCPU:1&resources_A=CUSTOM_GPU:1&resources_B=CUSTOM_GPU:2&group_policy=none&same_subtree=_A,_B"
)
GROWING = [
    f"/allocation_candidates?{QUERY}",
    f"/allocation_candidates?{QUERY}&limit=3",
    "/resource_providers",
    "/resource_providers?resources=CUSTOM_GPU:1",
    f"/v1/allocation_candidates?{QUERY}",
    f"/v1/allocation_candidates?{QUERY}&limit=3",
    f"/v1/explain?{QUERY}&misses=5",
    "/v1/explain?resources=CUSTOM_GPU:99&misses=5",
    "/v1/capacity",
]
LATEST = {"openstack_api_version": "placement 1.39"}


@pytest.fixture
def api(tmp_path: Path) -> Any:
    api = V1Api(tmp_path)
    api.execute(AddResourceClass("CUSTOM_GPU"))
    for tree in range(4):
        api.provider(f"host{tree}", VCPU=8)
        for device in range(3):
            api.provider(f"gpu{tree}-{device}", f"host{tree}", CUSTOM_GPU=4)
    yield api
    api.close()


@pytest.mark.parametrize("path", GROWING)
def test_an_answer_is_the_same_in_the_event_loop_and_in_a_process_of_its_own(
    api: V1Api, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    here = api.fetch(path, **LATEST)
    assert here.status_code == 200
    _let_nothing_be_computed_here(monkeypatch)
    apart = api.fetch(path, **LATEST)
    assert (apart.status_code, apart.content) == (here.status_code, here.content)


def test_pages_are_the_same_in_the_event_loop_and_in_processes(
    api: V1Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = api.pages(QUERY, 5)
    assert len(here) > 2
    _let_nothing_be_computed_here(monkeypatch)
    assert api.pages(QUERY, 5) == here


@pytest.mark.parametrize("path", GROWING)
def test_an_operation_that_can_grow_spends_work(
    api: V1Api, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """With none to spend it is computed in a process, for which there is no time: a 400."""
    _let_nothing_be_computed_here(monkeypatch)

    async def never(*_: object) -> bytes:
        raise budgets.ForkedTooLong("no time")

    monkeypatch.setattr(budgets, "run_forked", never)
    answer = api.fetch(path, **LATEST)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["code"] == "placement.query.too_expensive"


def test_allocations_of_many_consumers_are_written_in_parts(
    api: V1Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/resource_providers/{api.provider('pool', VCPU=100)}/allocations"
    for number in range(5):
        api.claim(uuid_of(f"c{number}"), uuid_of("pool"), VCPU=1)
    whole = api.fetch(path, **LATEST)
    monkeypatch.setattr("roost.placement.http.answers._MEMBERS_AT_ONCE", 2)
    assert api.fetch(path, **LATEST).content == whole.content
    assert len(whole.json()["allocations"]) == 5


def _let_nothing_be_computed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UNITS_ALONE", "UNITS_BESIDE_WRITES"):
        monkeypatch.setattr(budgets, name, 0)

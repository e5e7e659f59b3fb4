"""Claims with the condition of a server group over HTTP."""

from typing import Any

import pytest

from roost.fleet.work import WorkBudget
from roost.placement.queries import budget
from support.placement_api import ADMIN, uuid_of
from support.v1_api import V1Api

A, B = uuid_of("a"), uuid_of("b")


def claim(v1: V1Api, consumer: str, provider: str, pinned: int | None = None, **group: Any) -> Any:
    cells = [] if pinned is None else [{"guest": 0, "host": 0, "pinned": [[0, pinned]]}]
    body = {
        uuid_of(consumer): {
            "assignment": {"node": provider, "cells": cells} if cells else None,
            "allocations": {provider: {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
            "group": {"uuid": "g", **group},
        }
    }
    return v1.run(v1.client.post("/v1/allocations", json=body, headers=ADMIN))


def test_a_claim_that_breaks_its_group_is_a_conflict_and_changes_nothing(v1: V1Api) -> None:
    v1.provider("a", VCPU=8)
    v1.provider("b", VCPU=8)
    assert claim(v1, "x", A, policy="anti-affinity").status_code == 204
    refused = claim(v1, "y", A, policy="anti-affinity")
    [error] = refused.json()["errors"]
    assert (refused.status_code, error["code"]) == (409, "placement.server_group.refused")
    assert all(name in error["detail"] for name in ("Server group g", A, uuid_of("x")))
    assert v1.read("/v1/groups/g")["members"] == {uuid_of("x"): [A]}
    assert claim(v1, "y", B, policy="anti-affinity").status_code == 204
    assert v1.read("/v1/groups/g")["members"] == dict(sorted({uuid_of("x"): [A], uuid_of("y"): [B]}.items()))


def test_placements_own_api_never_shows_groups(v1: V1Api) -> None:
    v1.provider("a", VCPU=8)
    claim(v1, "x", A, policy="soft-affinity")
    answer = v1.read(f"/allocations/{uuid_of('x')}", openstack_api_version="placement 1.39")
    assert set(answer) == {"allocations", "project_id", "user_id", "consumer_generation", "consumer_type"}


def test_changes_tell_the_group_of_a_consumer(v1: V1Api) -> None:
    v1.provider("a", VCPU=8)
    claim(v1, "x", A, policy="soft-affinity")
    v1.claim(uuid_of("y"), A, VCPU=1)
    commits = v1.read("/v1/changes?limit=100")["commits"]
    consumers = {
        change["consumer"]: change["after"]["group"]
        for commit in commits
        for change in commit["changes"]
        if change["type"] == "allocations"
    }
    assert consumers == {uuid_of("x"): "g", uuid_of("y"): None}


def test_a_wrong_policy_is_refused(v1: V1Api) -> None:
    assert claim(v1, "x", A, policy="scattered").status_code == 400
    assert claim(v1, "x", A, policy="anti-affinity", max_server_per_host=0).status_code == 400


def test_members_and_assignments_are_listed_with_work_that_is_counted(
    v1: V1Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[WorkBudget] = []

    def work(units: int) -> WorkBudget:
        made.append(WorkBudget(units))
        return made[-1]

    monkeypatch.setattr(budget, "WorkBudget", work)
    v1.provider("a", VCPU=100)
    v1.read("/v1/groups/g")
    v1.read(f"/v1/assignments?nodes={A}")
    for number in range(50):
        wanted = claim(v1, f"x{number}", A, policy="soft-affinity", pinned=number)
        assert wanted.status_code == 204
    v1.read("/v1/groups/g")
    v1.read(f"/v1/assignments?nodes={A}")
    members, assignments = ((before.left - after.left) for before, after in zip(made, made[2:], strict=False))
    assert members >= 50 * 2
    assert assignments >= 50 * 10

"""Assignments over HTTP: claims that state them, conditions, and what is on a node."""

from typing import Any

import pytest

from support.placement_api import ADMIN, uuid_of
from support.v1_api import V1Api

A, B = uuid_of("a"), uuid_of("b")
NIC = {"request": "r", "pool": "p", "count": 1, "addresses": ["0000:81:00.0"]}


def cell(*cpus: int, **more: Any) -> dict[str, Any]:
    return {"guest": 0, "host": 1, "pinned": [[number, cpu] for number, cpu in enumerate(cpus)], **more}


def claim(v1: V1Api, consumer: str, provider: str, assignment: Any, **more: Any) -> Any:
    body = {
        uuid_of(consumer): {
            "allocations": {provider: {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_type": "INSTANCE",
            "assignment": assignment,
            **more,
        }
    }
    return v1.run(v1.client.post("/v1/allocations", json=body, headers=ADMIN))


def on(v1: V1Api, *nodes: str) -> Any:
    return v1.read(f"/v1/assignments?nodes={','.join(nodes)}")["nodes"]


def code(answer: Any) -> tuple[int, str]:
    [error] = answer.json()["errors"]
    return answer.status_code, error["code"]


def test_claims_state_and_drop_assignments(v1: V1Api) -> None:
    v1.provider("a", VCPU=8)
    v1.provider("b", VCPU=8)
    wanted = {
        "node": A,
        "cells": [cell(4, 5, reserved=[6], memory_mb=512, page_size_kb=2048)],
        "devices": [NIC],
    }
    assert claim(v1, "x", A, wanted).status_code == 204
    shown = on(v1, A, B)
    stored = shown[A]["consumers"][uuid_of("x")]
    assert stored["cells"] == [
        {
            "guest": 0,
            "host": 1,
            "pinned": [[0, 4], [1, 5]],
            "reserved": [6],
            "memory_mb": 512,
            "page_size_kb": 2048,
        }
    ]
    assert stored["devices"] == [NIC]
    assert shown[B]["consumers"] == {}
    assert claim(v1, "x", A, None).status_code == 204
    assert on(v1, A)[A] == {"digest": shown[B]["digest"], "consumers": {}}


def test_a_clash_is_a_conflict_and_changes_nothing(v1: V1Api) -> None:
    v1.provider("a", VCPU=8)
    claim(v1, "x", A, {"node": A, "cells": [cell(4)], "devices": [NIC]})
    before = on(v1, A)
    refused = claim(v1, "y", A, {"node": A, "cells": [cell(5, 4)]})
    assert code(refused) == (409, "placement.assignment.refused")
    assert "host CPU 4" in refused.text
    assert code(claim(v1, "y", A, {"node": A, "devices": [NIC]})) == (409, "placement.assignment.refused")
    assert on(v1, A) == before


def test_a_claim_is_refused_if_the_assignments_changed_that_it_was_fitted_beside(v1: V1Api) -> None:
    v1.provider("a", VCPU=8)
    beside = on(v1, A)[A]["digest"]
    assert claim(v1, "x", A, {"node": A, "cells": [cell(4)], "beside": beside}).status_code == 204
    late = claim(v1, "y", A, {"node": A, "cells": [cell(5)], "beside": beside})
    assert code(late) == (409, "placement.assignment.changed")
    beside = on(v1, A)[A]["digest"]
    assert claim(v1, "y", A, {"node": A, "cells": [cell(5)], "beside": beside}).status_code == 204


def test_the_placement_api_keeps_an_assignment_and_never_shows_it(v1: V1Api) -> None:
    v1.provider("a", VCPU=8)
    claim(v1, "x", A, {"node": A, "cells": [cell(4)]})
    version = {"openstack_api_version": "placement 1.39"}
    answer = v1.read(f"/allocations/{uuid_of('x')}", **version)
    assert set(answer) == {"allocations", "project_id", "user_id", "consumer_generation", "consumer_type"}
    body = {**answer, "allocations": {A: {"resources": {"VCPU": 2}}}}
    headers = {**ADMIN, "openstack-api-version": "placement 1.39"}
    put = v1.run(v1.client.put(f"/allocations/{uuid_of('x')}", json=body, headers=headers))
    assert put.status_code == 204
    assert list(on(v1, A)[A]["consumers"]) == [uuid_of("x")]
    [after] = [
        change["after"]
        for commit in v1.read("/v1/changes?limit=100")["commits"]
        for change in commit["changes"]
        if change["type"] == "allocations" and change["after"]["generation"] == 2
    ]
    assert after["assignment"]["node"] == A


@pytest.mark.parametrize(
    ("assignment", "text"),
    [
        ({"node": "a"}, "node"),
        ({"node": A, "cells": [cell(-1)]}, "pinned"),
        ({"node": A, "cells": [{"guest": 0}]}, "host"),
        ({"node": A, "devices": [{**NIC, "count": 0}]}, "count"),
        ({"node": A, "disks": []}, "disks"),
        ({"node": A, "cells": [cell(1, 1)]}, "host CPU 1 twice"),
        ({"node": B}, "from whose tree it has no allocation"),
        ({"node": uuid_of("none")}, "does not exist"),
    ],
)
def test_an_assignment_that_makes_no_sense_is_refused(v1: V1Api, assignment: Any, text: str) -> None:
    v1.provider("a", VCPU=8)
    v1.provider("b", VCPU=8)
    refused = claim(v1, "x", A, assignment)
    assert refused.status_code == 400
    assert text in refused.text


@pytest.mark.parametrize(
    "nodes", ["", "a", f"{A},", ",".join([A] * 201)], ids=["none", "no uuid", "an empty one", "too many"]
)
def test_a_query_that_makes_no_sense_is_refused(v1: V1Api, nodes: str) -> None:
    answer = v1.run(v1.client.get(f"/v1/assignments?nodes={nodes}", headers=ADMIN))
    assert answer.status_code == 400

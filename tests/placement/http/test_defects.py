"""What openstack-placement 16.0.0 gets wrong and Roost must not: a test for each.

Claims under contention, over several providers in either order, on every database: `test_databases`.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

import falcon.testing
import pytest
import sqlalchemy as sa

from support.placement_api import ADMIN, PROJECT, Api, allocation, fault, uuid_of

A, B, C = uuid_of("a"), uuid_of("b"), uuid_of("c")
NOWHERE = uuid_of("none")


def work(act: Callable[[], object]) -> int:
    """How much work something is: the functions that it calls."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def reshape(allocations: dict[str, Any]) -> dict[str, Any]:
    return {
        "inventories": {A: {"inventories": {"VCPU": {"total": 8}}, "resource_provider_generation": 1}},
        "allocations": allocations,
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", f"/allocations/{C}", allocation({}), 204),
        ("PUT", f"/allocations/{C}", allocation({NOWHERE: {"VCPU": 1}}), 400),
        ("PUT", f"/allocations/{C}", allocation({A: {"VCPU": 9}}), 409),
        ("POST", "/allocations", {C: allocation({NOWHERE: {"VCPU": 1}})}, 400),
        (
            "POST",
            "/allocations",
            {C: allocation({A: {"VCPU": 1}}), B: allocation({NOWHERE: {"VCPU": 1}})},
            400,
        ),
        ("POST", "/reshaper", reshape({C: allocation({NOWHERE: {"VCPU": 1}})}), 400),
        ("POST", "/reshaper", reshape({C: allocation({A: {"VCPU": 9}})}), 409),
    ],
)
def test_a_write_that_gives_nothing_leaves_no_consumer(
    api: Api, method: str, path: str, body: dict[str, Any], status: int
) -> None:
    api.provider("a", VCPU=8)
    assert api.ask(method, path, body).status_code == status
    # A consumer left behind would be found here: null says that there is none.
    api.put(f"/allocations/{C}", allocation({A: {"VCPU": 1}}))


def wide(api: Api, groups: int) -> str:
    """A query for devices, of which each host has eight, and eight functions on each."""
    wanted = "&".join(f"resources_{number}=CUSTOM_VF:1" for number in range(groups))
    return f"/allocation_candidates?{wanted}&group_policy=none&limit=10"


def test_groups_on_many_devices_do_not_explode(api: Api) -> None:
    api.put("/resource_classes/CUSTOM_VF")
    api.provider("a", VCPU=8)
    for number in range(8):
        api.provider(f"d{number}", parent="a", CUSTOM_VF=8)
    assert len(api.get(wide(api, 6))["allocation_requests"]) == 10
    # Six groups have 4,096 times as many combinations as two have.
    assert work(lambda: api.get(wide(api, 6))) < 10 * work(lambda: api.get(wide(api, 2)))


def test_groups_together_never_ask_for_more_than_is_left(api: Api) -> None:
    api.put("/resource_classes/CUSTOM_VF")
    api.provider("a", VCPU=8)
    api.provider("d1", parent="a", CUSTOM_VF=4)
    api.provider("d2", parent="a", CUSTOM_VF=4)
    api.claim(C, uuid_of("d1"), CUSTOM_VF=3)
    found = api.get(
        "/allocation_candidates?resources_1=CUSTOM_VF:1&resources_2=CUSTOM_VF:1&group_policy=none"
    )
    together = [request["allocations"] for request in found["allocation_requests"]]
    assert len(together) == 3 and all(held.get(uuid_of("d1")) != {"CUSTOM_VF": 2} for held in together)


def test_one_candidate_costs_the_same_among_few_and_many(api: Api) -> None:
    query = "/allocation_candidates?resources=VCPU:1"
    one, everything = [], []
    for hosts in (range(10), range(10, 300)):
        for number in hosts:
            api.provider(f"h{number}", VCPU=8)
        one.append(work(lambda: api.get(f"{query}&limit=1")))
        everything.append(work(lambda: api.get(query)))
    # The second only shows that this way of measuring sees what grows.
    assert one[1] < 1.1 * one[0] and everything[1] > 2 * everything[0]


def test_a_group_without_resources_may_only_forbid(api: Api) -> None:
    api.provider("a", VCPU=8)
    query = "/allocation_candidates?resources_1=VCPU:1&required_2=!HW_NUMA_ROOT&same_subtree=_1,_2"
    found = api.get(f"{query}&group_policy=none")
    assert [request["mappings"] for request in found["allocation_requests"]] == [{"_1": [A], "_2": [A]}]


def test_in_tree_binds_a_group_without_resources(api: Api) -> None:
    api.provider("a", VCPU=8)
    api.provider("b", VCPU=8)
    query = f"/allocation_candidates?resources_1=VCPU:1&in_tree_2={B}&same_subtree=_1,_2&group_policy=none"
    found = api.get(query)["allocation_requests"]
    assert [request["mappings"] for request in found] == [{"_1": [B], "_2": [B]}]


def test_of_several_who_set_traits_at_once_one_does(api: Api) -> None:
    api.provider("a")
    conductor = falcon.testing.ASGIConductor(api.app)
    body = json.dumps({"traits": ["HW_NUMA_ROOT"], "resource_provider_generation": 0}).encode()
    headers = {**ADMIN, "openstack-api-version": "placement 1.39", "content-type": "application/json"}

    async def together() -> list[int]:
        path = f"/resource_providers/{A}/traits"
        asked = (conductor.simulate_request("PUT", path, body=body, headers=headers) for _ in range(8))
        return sorted(answer.status_code for answer in await asyncio.gather(*asked))

    assert api.run(together()) == [200] + [409] * 7


@pytest.mark.parametrize(
    "query",
    [
        "limit=abc&limit=5",
        "limit=5&limit=abc",
        f"limit={'9' * 30}&limit=0",
        "resources_1=VCPU:1&resources_2=VCPU:1&group_policy=foo&group_policy=none",
    ],
)
def test_every_value_of_a_parameter_is_checked(api: Api, query: str) -> None:
    assert fault(api.ask("GET", f"/allocation_candidates?resources=VCPU:1&{query}"))[0] == 400


@pytest.mark.parametrize("amount", [2**31, 2**63, 2**64, 10**19])
def test_an_amount_that_nobody_has_finds_nothing(api: Api, amount: int) -> None:
    api.provider("a", VCPU=8)
    assert not api.get(f"/allocation_candidates?resources=VCPU:{amount}")["allocation_requests"]
    assert not api.get(f"/resource_providers?resources=VCPU:{amount}")["resource_providers"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/resource_providers", b'{"name": "a\\u0000b"}'),
        ("POST", "/resource_providers", b'{"name": "\\ud800"}'),
        ("PUT", f"/resource_providers/{A}", b'{"name": "\\ud800"}'),
        ("PUT", f"/allocations/{C}", json.dumps(allocation({A: {"VCPU": 1}}, user_id="\ud800")).encode()),
        ("PUT", f"/allocations/{C}", json.dumps(allocation({A: {"VCPU": 1}}, user_id="\x00")).encode()),
        *(
            (
                "POST",
                f"/resource_providers/{A}/inventories",
                b'{"resource_class": "VCPU", "total": 1, "allocation_ratio": %s}' % ratio,
            )
            for ratio in (b"NaN", b"Infinity", b"-Infinity", b"1e400")
        ),
        ("POST", f"/resource_providers/{A}/inventories", b'{"resource_class": "VCPU", "total": 1e400}'),
        (
            "POST",
            f"/resource_providers/{A}/inventories",
            b'{"resource_class": "VCPU", "total": %s}' % (b"9" * 5000),
        ),
    ],
)
def test_what_is_no_text_or_no_number_is_400(api: Api, method: str, path: str, body: bytes) -> None:
    api.provider("a")
    assert fault(api.ask(method, path, body))[0] == 400
    assert [each["name"] for each in api.get("/resource_providers")["resource_providers"]] == ["a"]


def test_every_answer_names_the_header_that_it_depends_on(api: Api) -> None:
    for answer in (
        api.ask("GET", "/no-such-path"),
        api.ask("GET", f"/resource_providers/{NOWHERE}"),
        api.ask("GET", "/resource_providers", x_roles="nobody"),
    ):
        assert answer.status_code in (403, 404)
        assert answer.headers["vary"] == "openstack-api-version"


def test_usages_of_several_types(api: Api) -> None:
    """On PostgreSQL upstream answers 500: a column is missing in its GROUP BY."""
    api.provider("a", VCPU=8)
    api.claim(B, A, VCPU=1)
    api.put(f"/allocations/{C}", allocation({A: {"VCPU": 2}}, consumer_type="MIGRATION"))
    assert api.get(f"/usages?project_id={PROJECT['project_id']}")["usages"] == {
        "INSTANCE": {"VCPU": 1, "consumer_count": 1},
        "MIGRATION": {"VCPU": 2, "consumer_count": 1},
    }


def test_usages_are_answered_without_a_statement_over_the_consumers(api: Api) -> None:
    """Such a statement took 0.7 s with a million consumers, in the thread that claims need."""
    api.provider("a", VCPU=8)
    api.claim(B, A, VCPU=1)
    statements: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        assert api.get(f"/usages?project_id={PROJECT['project_id']}")["usages"]
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    assert not [each for each in statements if "allocations" in each or "consumers" in each]

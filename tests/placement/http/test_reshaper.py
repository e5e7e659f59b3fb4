"""``/reshaper``."""

from typing import Any

import pytest

from support.placement_api import Api, allocation, fault, uuid_of

A, B, C = uuid_of("a"), uuid_of("b"), uuid_of("c")


@pytest.fixture(autouse=True)
def moving(api: Api) -> None:
    """A host whose GPUs shall move to a child; a consumer holds one."""
    api.put("/resource_classes/CUSTOM_GPU")
    api.provider("a", VCPU=8, CUSTOM_GPU=2)
    api.provider("b", parent="a")
    api.claim(C, A, VCPU=1, CUSTOM_GPU=1)


def reshape(**more: Any) -> dict[str, Any]:
    held = {A: {"VCPU": 1}, B: {"CUSTOM_GPU": 1}}
    return {
        "inventories": {
            A: {"resource_provider_generation": 3, "inventories": {"VCPU": {"total": 8}}},
            B: {"resource_provider_generation": 0, "inventories": {"CUSTOM_GPU": {"total": 2}}},
        },
        "allocations": {C: allocation(held, consumer_generation=1)},
        **more,
    }


def test_inventories_and_allocations_move_together(api: Api) -> None:
    assert api.post("/reshaper", reshape()).status_code == 204
    assert list(api.get(f"/resource_providers/{A}/inventories")["inventories"]) == ["VCPU"]
    assert api.get(f"/resource_providers/{B}/usages")["usages"] == {"CUSTOM_GPU": 1}
    held = api.get(f"/allocations/{C}")["allocations"]
    assert {provider: each["resources"] for provider, each in held.items()} == {
        A: {"VCPU": 1},
        B: {"CUSTOM_GPU": 1},
    }


def test_what_stays_allocated_cannot_lose_its_inventory(api: Api) -> None:
    answer = api.ask("POST", "/reshaper", reshape(allocations={}))
    assert fault(answer) == (409, "placement.inventory.inuse")
    assert api.generation(A) == 3
    assert api.get(f"/resource_providers/{A}/usages")["usages"] == {"VCPU": 1, "CUSTOM_GPU": 1}


def replaced(provider: str, **record: Any) -> dict[str, Any]:
    return {"inventories": {provider: {"resource_provider_generation": 3, "inventories": {}, **record}}}


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        (replaced(uuid_of("none")), 400, "resource_provider.not_found"),
        (replaced(A, resource_provider_generation=1), 409, "concurrent_update"),
        (replaced(A, inventories={"CUSTOM_NONE": {"total": 1}}), 400, "undefined_code"),
        ({"inventories": {}}, 400, "undefined_code"),
        ({"allocations": {C: allocation({A: {"VCPU": 99}}, consumer_generation=1)}}, 409, "undefined_code"),
        ({"allocations": {C: allocation({A: {"VCPU": 1}})}}, 409, "concurrent_update"),
    ],
)
def test_a_wrong_reshape_changes_nothing(api: Api, change: dict[str, Any], status: int, code: str) -> None:
    body = reshape()
    assert fault(api.ask("POST", "/reshaper", {**body, **change})) == (status, f"placement.{code}")
    assert api.generation(A) == 3
    assert api.get(f"/allocations/{C}")["consumer_generation"] == 1

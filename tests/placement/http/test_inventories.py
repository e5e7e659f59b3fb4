"""``/resource_providers/{uuid}/inventories``."""

from typing import Any

import pytest

from roost.model.vocabulary import MAX_INT
from support.placement_api import Api, fault, uuid_of

A = uuid_of("a")
ALL = f"/resource_providers/{A}/inventories"
ONE = f"{ALL}/VCPU"


@pytest.fixture(autouse=True)
def provider(api: Api) -> None:
    api.provider("a", VCPU=8)


def whole(generation: int = 1, **inventories: dict[str, Any]) -> dict[str, Any]:
    return {"resource_provider_generation": generation, "inventories": inventories}


def test_an_inventory_has_defaults(api: Api) -> None:
    assert api.get(ONE) == {
        "total": 8,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": MAX_INT,
        "step_size": 1,
        "allocation_ratio": 1.0,
        "resource_provider_generation": 1,
    }


def test_a_whole_number_may_be_written_as_a_float(api: Api) -> None:
    """In JSON schema, by which upstream judges, 1.0 is an integer."""
    assert api.put(ONE, {"total": 16.0, "resource_provider_generation": 1.0}).json["total"] == 16
    assert api.get(ONE)["total"] == 16
    for wrong in (16.5, 2.0**31, True, 1e300):
        answer = api.ask("PUT", ONE, {"total": wrong, "resource_provider_generation": 2})
        assert fault(answer)[0] == 400
    # A fault elsewhere is what is complained of.
    answer = api.ask("PUT", ONE, {"total": 16.0, "reserved": -1, "resource_provider_generation": 2})
    assert "-1 is less than the minimum of 0" in answer.json["errors"][0]["detail"]


def test_put_replaces_everything(api: Api) -> None:
    answer = api.put(ALL, whole(MEMORY_MB={"total": 2048, "allocation_ratio": 1.5})).json
    assert answer == api.get(ALL)
    assert list(answer["inventories"]) == ["MEMORY_MB"]
    assert answer["resource_provider_generation"] == 2


def test_post_adds_one_class_once(api: Api) -> None:
    added = api.post(ALL, {"resource_class": "DISK_GB", "total": 10})
    assert (added.status_code, added.headers["location"].endswith(f"{ALL}/DISK_GB")) == (201, True)
    again = api.ask("POST", ALL, {"resource_class": "DISK_GB", "total": 10})
    assert fault(again) == (409, "placement.concurrent_update")


def test_put_of_one_class_replaces_it(api: Api) -> None:
    changed = api.put(ONE, {"total": 16, "resource_provider_generation": 1}).json
    assert (changed["total"], changed["resource_provider_generation"]) == (16, 2)
    body = {"total": 16, "resource_provider_generation": 2}
    assert api.ask("PUT", f"{ALL}/DISK_GB", body).status_code == 400


@pytest.mark.parametrize(
    ("path", "body"), [(ALL, whole(0)), (ONE, {"total": 1, "resource_provider_generation": 0})]
)
def test_an_old_generation_is_refused(api: Api, path: str, body: object) -> None:
    assert fault(api.ask("PUT", path, body)) == (409, "placement.concurrent_update")
    assert api.get(ONE)["total"] == 8


def test_delete_takes_one_or_all(api: Api) -> None:
    api.post(ALL, {"resource_class": "DISK_GB", "total": 10})
    assert api.delete(ONE).status_code == 204
    assert api.ask("DELETE", ONE).status_code == 404
    assert api.ask("GET", ONE).status_code == 404
    assert api.delete(ALL).status_code == 204
    assert api.get(ALL) == {"inventories": {}, "resource_provider_generation": 4}


def test_inventory_in_use_stays(api: Api) -> None:
    api.claim(uuid_of("c"), A, VCPU=2)
    in_use = (409, "placement.inventory.inuse")
    assert fault(api.ask("DELETE", ALL)) == in_use
    assert fault(api.ask("PUT", ALL, whole(2))) == in_use
    assert fault(api.ask("DELETE", ONE)) == (409, "placement.concurrent_update")
    assert api.get(ONE)["total"] == 8


def test_inventory_may_shrink_below_its_use(api: Api) -> None:
    api.claim(uuid_of("c"), A, VCPU=6)
    assert api.put(ALL, whole(2, VCPU={"total": 4})).status_code == 200


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"total": 0},
        {"total": MAX_INT + 1},
        {"total": "8"},
        {"total": True},
        {"total": 8, "reserved": -1},
        {"total": 8, "reserved": 9},
        {"total": 8, "min_unit": 0},
        {"total": 8, "step_size": 0},
        {"total": 8, "max_unit": 0},
        {"total": 8, "allocation_ratio": 3.5e38},
        {"total": 8, "allocation_ratio": float("nan")},
        {"total": 8, "allocation_ratio": float("inf")},
        {"total": 8, "allocation_ratio": -1.0},
        {"total": 8, "colour": "red"},
        {"total": 10**30},
    ],
)
def test_a_malformed_inventory_is_400(api: Api, record: dict[str, Any]) -> None:
    assert api.ask("PUT", ALL, whole(DISK_GB=record)).status_code == 400
    assert api.ask("POST", ALL, {"resource_class": "DISK_GB", **record}).status_code == 400
    assert api.ask("PUT", ONE, {"resource_provider_generation": 1, **record}).status_code == 400
    assert api.generation(A) == 1


def test_an_unknown_class_is_400(api: Api) -> None:
    assert api.ask("POST", ALL, {"resource_class": "CUSTOM_NONE", "total": 1}).status_code == 400
    assert api.ask("PUT", ALL, whole(**{"lower case": {"total": 1}})).status_code == 400


def test_all_may_be_reserved_since_1_26(api: Api) -> None:
    body = whole(VCPU={"total": 8, "reserved": 8})
    assert api.ask("PUT", ALL, body, version="1.25").status_code == 400
    assert api.put(ALL, body, version="1.26").status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unknown_provider_is_404(api: Api, method: str) -> None:
    path = f"/resource_providers/{uuid_of('none')}/inventories"
    assert api.ask(method, path).status_code == 404
    assert api.ask(method, f"{path}/VCPU").status_code == 404

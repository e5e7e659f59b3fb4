"""``/resource_classes``."""

import pytest

from support.ledgers import findings_in
from support.placement_api import Api, uuid_of


def test_a_custom_class_comes_and_goes(api: Api) -> None:
    assert api.put("/resource_classes/CUSTOM_GPU").status_code == 201
    assert api.put("/resource_classes/CUSTOM_GPU").status_code == 204
    shown = api.get("/resource_classes/CUSTOM_GPU")
    assert shown == {
        "name": "CUSTOM_GPU",
        "links": [{"rel": "self", "href": "/resource_classes/CUSTOM_GPU"}],
    }
    assert shown in api.get("/resource_classes")["resource_classes"]
    assert api.delete("/resource_classes/CUSTOM_GPU").status_code == 204
    assert api.ask("GET", "/resource_classes/CUSTOM_GPU").status_code == 404
    assert api.ask("DELETE", "/resource_classes/CUSTOM_GPU").status_code == 404


def test_post_is_for_new_classes(api: Api) -> None:
    body = {"name": "CUSTOM_GPU"}
    created = api.post("/resource_classes", body)
    assert (created.status_code, created.text) == (201, "")
    assert created.headers["location"].endswith("/resource_classes/CUSTOM_GPU")
    assert api.ask("POST", "/resource_classes", body).status_code == 409
    assert api.ask("POST", "/resource_classes", {"name": "GPU"}).status_code == 400


@pytest.mark.parametrize("name", ["VCPU", "CUSTOM_gpu", "CUSTOM_" + "X" * 249])
def test_only_a_custom_name_can_be_put(api: Api, name: str) -> None:
    assert api.ask("PUT", f"/resource_classes/{name}").status_code == 400


def test_a_standard_class_stays(api: Api) -> None:
    assert api.ask("DELETE", "/resource_classes/VCPU").status_code == 400


def test_up_to_1_6_put_renames(api: Api) -> None:
    api.put("/resource_classes/CUSTOM_OLD")
    api.put("/resource_classes/CUSTOM_GPU")
    path, new = "/resource_classes/CUSTOM_OLD", {"name": "CUSTOM_NEW"}
    assert api.ask("PUT", path, {"name": "CUSTOM_GPU"}, version="1.6").status_code == 409
    assert api.put(path, new, version="1.6").json["name"] == "CUSTOM_NEW"
    assert api.ask("PUT", path, new, version="1.6").status_code == 404
    assert api.ask("PUT", "/resource_classes/VCPU", new, version="1.6").status_code == 400


def test_a_class_in_use_stays(api: Api) -> None:
    api.put("/resource_classes/CUSTOM_GPU")
    api.provider("a", CUSTOM_GPU=1)
    assert api.ask("DELETE", "/resource_classes/CUSTOM_GPU").status_code == 409
    assert api.get(f"/resource_providers/{uuid_of('a')}/inventories/CUSTOM_GPU")["total"] == 1


def test_a_class_in_use_is_renamed_with_all_that_is_held(api: Api) -> None:
    a, consumers = uuid_of("a"), [uuid_of("c1"), uuid_of("c2")]
    api.put("/resource_classes/CUSTOM_GPU")
    api.provider("a", CUSTOM_GPU=4, VCPU=8)
    for consumer in consumers:
        api.claim(consumer, a, CUSTOM_GPU=1, VCPU=2)
    before = api.generation(a)
    api.put("/resource_classes/CUSTOM_GPU", {"name": "CUSTOM_NEW"}, version="1.6")
    assert api.generation(a) == before
    assert api.get(f"/resource_providers/{a}/inventories")["inventories"].keys() == {"CUSTOM_NEW", "VCPU"}
    assert api.get(f"/resource_providers/{a}/usages")["usages"] == {"CUSTOM_NEW": 2, "VCPU": 4}
    for consumer in consumers:
        held = api.get(f"/allocations/{consumer}")
        assert held["allocations"][a]["resources"] == {"CUSTOM_NEW": 1, "VCPU": 2}
        assert held["consumer_generation"] == 1
    api.delete(f"/allocations/{consumers[0]}")
    assert api.get(f"/resource_providers/{a}/usages")["usages"] == {"CUSTOM_NEW": 1, "VCPU": 2}
    assert findings_in(api.path) == []

"""Oddities of openstack-placement 16.0.0: kept where a client could depend on them, else refused.

Which is which, and why, is in docs/differences.md.
"""

from typing import Any

import pytest

from support.placement_api import Api, allocation, fault, uuid_of

A, C = uuid_of("a"), uuid_of("c")
DEVICE = "AAAAAAAA-0000-0000-0000-00000000000A"
SPELLINGS = [DEVICE, DEVICE.lower(), DEVICE.replace("-", "")]


@pytest.mark.parametrize(
    "record", [{"min_unit": 5, "max_unit": 2}, {"allocation_ratio": 0}, {"allocation_ratio": -1.5}]
)
def test_kept_an_inventory_that_gives_nothing(api: Api, record: dict[str, Any]) -> None:
    api.provider("a")
    body = {"resource_class": "VCPU", "total": 8, **record}
    status = api.ask("POST", f"/resource_providers/{A}/inventories", body).status_code
    assert status == (400 if record.get("allocation_ratio", 0) < 0 else 201)
    assert not api.get("/allocation_candidates?resources=VCPU:3")["allocation_requests"]


def test_kept_put_takes_an_empty_name_and_post_does_not(api: Api) -> None:
    api.provider("a")
    assert fault(api.ask("POST", "/resource_providers", {"name": ""}))[0] == 400
    assert api.put(f"/resource_providers/{A}", {"name": ""}).json["name"] == ""


def test_kept_each_spelling_of_an_aggregate_is_an_aggregate(api: Api) -> None:
    for number, spelling in enumerate(SPELLINGS):
        path = f"/resource_providers/{api.provider(f'p{number}')}/aggregates"
        api.put(path, {"aggregates": [spelling], "resource_provider_generation": 0})
        assert api.get(path)["aggregates"] == [spelling]
    for number, spelling in enumerate(SPELLINGS):
        found = api.get(f"/resource_providers?member_of={spelling}")["resource_providers"]
        assert [each["name"] for each in found] == [f"p{number}"]


def test_kept_a_provider_is_addressed_by_the_text_of_its_uuid(api: Api) -> None:
    api.post("/resource_providers", {"name": "a", "uuid": SPELLINGS[2]})
    stored = DEVICE.lower()
    assert api.get(f"/resource_providers/{stored}")["uuid"] == stored
    for spelling in (DEVICE, SPELLINGS[2]):
        assert api.ask("GET", f"/resource_providers/{spelling}").status_code == 404


def test_kept_several_exclamation_marks_are_one(api: Api) -> None:
    api.provider("a", VCPU=8)
    query = "/allocation_candidates?resources=VCPU:1&required="
    assert api.get(f"{query}!!!HW_NUMA_ROOT") == api.get(f"{query}!HW_NUMA_ROOT")


@pytest.mark.parametrize("amount", ["%202", "2%20", "+2", "%2B2", "002"])
def test_kept_blanks_and_a_sign_around_an_amount(api: Api, amount: str) -> None:
    api.provider("a", VCPU=8)
    [found] = api.get(f"/allocation_candidates?resources=VCPU:{amount}")["allocation_requests"]
    assert found["allocations"] == {A: {"resources": {"VCPU": 2}}}


@pytest.mark.parametrize(
    "amount", ["1_0", "%D9%A1", "%EF%BC%92", "%C2%B2", "-1", "0", "", "1.0", "1e1", "0x1"]
)
def test_refused_an_amount_that_is_no_number_in_ascii(api: Api, amount: str) -> None:
    assert fault(api.ask("GET", f"/allocation_candidates?resources=VCPU:{amount}"))[0] == 400
    assert fault(api.ask("GET", f"/resource_providers?resources=VCPU:{amount}"))[0] == 400


def test_kept_of_a_class_named_twice_the_last_counts(api: Api) -> None:
    api.provider("a", VCPU=8)
    [found] = api.get("/allocation_candidates?resources=VCPU:1,VCPU:2")["allocation_requests"]
    assert found["allocations"] == {A: {"resources": {"VCPU": 2}}}


def test_refused_a_filter_of_traits_that_there_is_not(api: Api) -> None:
    assert fault(api.ask("GET", "/traits?name=foo:HW_NUMA_ROOT"))[0] == 400


@pytest.mark.parametrize("consumer_type", ["allX", "unknownX", "Xall", "instance"])
def test_refused_a_consumer_type_that_cannot_be(api: Api, consumer_type: str) -> None:
    assert fault(api.ask("GET", f"/usages?project_id=p&consumer_type={consumer_type}"))[0] == 400


@pytest.mark.parametrize("consumer", [C.upper(), C.replace("-", "")])
def test_kept_a_consumer_is_written_by_any_spelling_and_read_by_one(api: Api, consumer: str) -> None:
    api.provider("a", VCPU=8)
    api.put(f"/allocations/{consumer}", allocation({A: {"VCPU": 1}}))
    assert api.get(f"/allocations/{C}")["allocations"].keys() == {A}
    assert bool(api.get(f"/allocations/{consumer}")["allocations"]) == (consumer == C)


def test_kept_parameters_are_ignored_where_there_are_none(api: Api) -> None:
    api.provider("a")
    assert api.get(f"/resource_providers/{A}?colour=red")["uuid"] == A


def test_refused_a_parameter_with_a_newline_at_the_end_of_its_name(api: Api) -> None:
    answer = api.ask("GET", "/allocation_candidates?resources=VCPU:1&required1%0A=CUSTOM_X")
    assert fault(answer)[0] == 400
    assert "required1" in answer.json["errors"][0]["detail"]

"""``/allocations``, the allocations of a provider, and usages."""

from typing import Any

import pytest

from support.placement_api import PROJECT, Api, allocation, fault, uuid_of

A, B = uuid_of("a"), uuid_of("b")
C, D = uuid_of("c"), uuid_of("d")
PATH = f"/allocations/{C}"
CONFLICT = (409, "placement.concurrent_update")


@pytest.fixture(autouse=True)
def providers(api: Api) -> None:
    api.provider("a", VCPU=8, MEMORY_MB=1024)
    api.provider("b", VCPU=8)


def listed(*pairs: tuple[str, dict[str, int]], **more: Any) -> dict[str, Any]:
    allocations = [{"resource_provider": {"uuid": uuid}, "resources": held} for uuid, held in pairs]
    return {"allocations": allocations, **more}


def keyed(held: dict[str, dict[str, int]], **more: Any) -> dict[str, Any]:
    return {"allocations": {uuid: {"resources": each} for uuid, each in held.items()}, **PROJECT, **more}


@pytest.mark.parametrize(
    ("version", "body"),
    [
        ("1.0", listed((A, {"VCPU": 2}))),
        ("1.8", listed((A, {"VCPU": 2}), **PROJECT)),
        ("1.12", keyed({A: {"VCPU": 2}})),
        ("1.28", keyed({A: {"VCPU": 2}}, consumer_generation=None)),
        ("1.34", keyed({A: {"VCPU": 2}}, consumer_generation=None, mappings={"": [A]})),
        ("1.38", allocation({A: {"VCPU": 2}})),
    ],
)
def test_each_version_writes_in_its_own_form(api: Api, version: str, body: dict[str, Any]) -> None:
    assert api.put(PATH, body, version=version).status_code == 204
    shown = api.get(PATH)
    assert shown["allocations"] == {A: {"resources": {"VCPU": 2}, "generation": 3}}
    assert shown["consumer_generation"] == 1
    assert shown["consumer_type"] == ("INSTANCE" if version == "1.38" else "unknown")
    nobody = "00000000-0000-0000-0000-000000000000"
    assert shown["project_id"] == (nobody if version == "1.0" else "project")


@pytest.mark.parametrize(
    ("version", "body"),
    [
        ("1.0", listed()),
        ("1.0", listed((A, {}))),
        ("1.0", listed((A, {"VCPU": 2}), **PROJECT)),
        ("1.8", listed((A, {"VCPU": 2}))),
        ("1.12", listed((A, {"VCPU": 2}), **PROJECT)),
        ("1.12", keyed({})),
        ("1.27", keyed({A: {"VCPU": 2}}, consumer_generation=None)),
        ("1.28", keyed({A: {"VCPU": 2}})),
        ("1.33", keyed({A: {"VCPU": 2}}, consumer_generation=None, mappings={"": [A]})),
        ("1.34", keyed({A: {"VCPU": 2}}, consumer_generation=None, mappings={})),
        ("1.34", keyed({A: {"VCPU": 2}}, consumer_generation=None, mappings={"": []})),
        ("1.38", keyed({A: {"VCPU": 2}}, consumer_generation=None)),
        ("1.38", allocation({A: {"VCPU": 2}}, consumer_type="instance")),
        ("1.38", allocation({A: {"VCPU": 2}}, consumer_type="INSTANCE\n")),
        ("1.39", allocation({A: {"VCPU": 0}})),
        ("1.39", allocation({A: {}})),
        ("1.39", allocation({"x": {"VCPU": 1}})),
        ("1.39", allocation({A: {"VCPU": 2}}, project_id="")),
        ("1.39", allocation({A: {"VCPU": 2}}, project_id="a\x00")),
        ("1.39", allocation({A: {"CUSTOM_NONE": 2}})),
        ("1.39", allocation({uuid_of("none"): {"VCPU": 2}})),
    ],
)
def test_a_malformed_write_is_400_and_leaves_nothing(api: Api, version: str, body: dict[str, Any]) -> None:
    assert api.ask("PUT", PATH, body, version=version).status_code == 400
    assert api.get(PATH) == {"allocations": {}}
    assert api.put(PATH, allocation({A: {"VCPU": 1}})).status_code == 204


@pytest.mark.parametrize("amount", [9, 2**31, 2**63, 10**30])
def test_more_than_there_is_is_409_however_much_it_is(api: Api, amount: int) -> None:
    assert api.ask("PUT", PATH, allocation({A: {"VCPU": amount}})).status_code == 409
    assert api.put(PATH, allocation({A: {"VCPU": 1}})).status_code == 204


def test_a_consumer_must_be_a_uuid(api: Api) -> None:
    assert api.ask("PUT", "/allocations/me", allocation({A: {"VCPU": 1}})).status_code == 400


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("1.11", set()),
        ("1.12", {"project_id", "user_id"}),
        ("1.28", {"project_id", "user_id", "consumer_generation"}),
        ("1.38", {"project_id", "user_id", "consumer_generation", "consumer_type"}),
    ],
)
def test_a_consumer_is_shown_as_its_version_has_it(api: Api, version: str, fields: set[str]) -> None:
    api.claim(C, A, VCPU=1)
    assert set(api.get(PATH, version=version)) == {"allocations", *fields}
    on_provider = api.get(f"/resource_providers/{A}/allocations", version=version)["allocations"]
    assert ("consumer_generation" in on_provider[C]) == (version >= "1.28")


def test_a_write_replaces_all_and_raises_generations(api: Api) -> None:
    api.claim(C, A, VCPU=2)
    api.put(PATH, allocation({B: {"VCPU": 3}}, consumer_generation=1))
    assert api.get(PATH)["allocations"] == {B: {"resources": {"VCPU": 3}, "generation": 2}}
    assert api.get(f"/resource_providers/{A}/usages")["usages"] == {"VCPU": 0, "MEMORY_MB": 0}


def test_a_consumer_generation_must_be_the_present_one(api: Api) -> None:
    assert fault(api.ask("PUT", PATH, allocation({A: {"VCPU": 1}}, consumer_generation=1))) == CONFLICT
    api.claim(C, A, VCPU=1)
    for generation in (None, 0, 2):
        body = allocation({A: {"VCPU": 1}}, consumer_generation=generation)
        assert fault(api.ask("PUT", PATH, body)) == CONFLICT


def test_an_empty_write_clears_the_consumer_and_leaves_no_trace(api: Api) -> None:
    api.put(PATH, allocation({}))
    api.claim(C, A, VCPU=1)
    api.put(PATH, allocation({}, consumer_generation=1))
    assert api.get(PATH) == {"allocations": {}}
    api.claim(C, A, VCPU=1)


@pytest.mark.parametrize("held", [{A: {"VCPU": 9}}, {B: {"MEMORY_MB": 1}}, {A: {"VCPU": 1}, B: {"VCPU": 9}}])
def test_what_does_not_fit_is_409_and_changes_nothing(api: Api, held: dict[str, dict[str, int]]) -> None:
    answer = api.ask("PUT", PATH, allocation(held))
    assert fault(answer) == (409, "placement.undefined_code")
    assert "Unable to allocate inventory" in answer.text
    assert api.get(PATH) == {"allocations": {}}
    assert api.generation(A) == 2


def test_overuse_may_be_lowered_but_not_raised(api: Api) -> None:
    api.claim(C, A, VCPU=8)
    shrunk = {"resource_provider_generation": 3, "inventories": {"VCPU": {"total": 4}}}
    api.put(f"/resource_providers/{A}/inventories", shrunk)
    for amount, status in ((9, 409), (8, 204), (7, 204)):
        generation = api.get(PATH)["consumer_generation"]
        body = allocation({A: {"VCPU": amount}}, consumer_generation=generation)
        assert api.ask("PUT", PATH, body).status_code == status


TIGHTENED = [{"max_unit": 2}, {"min_unit": 8}, {"step_size": 5}]


@pytest.mark.parametrize("tighter", TIGHTENED)
def test_what_is_held_beside_tightened_units_may_be_held_again_but_not_raised(
    api: Api, tighter: dict[str, int]
) -> None:
    api.claim(C, A, VCPU=6)
    record = {"resource_provider_generation": 3, "inventories": {"VCPU": {"total": 16, **tighter}}}
    api.put(f"/resource_providers/{A}/inventories", record)
    for amount, status in ((7, 409), (6, 204), (4, 204)):
        generation = api.get(PATH)["consumer_generation"]
        body = allocation({A: {"VCPU": amount}}, consumer_generation=generation)
        assert api.ask("PUT", PATH, body).status_code == status


@pytest.mark.parametrize("tighter", TIGHTENED)
def test_what_is_held_beside_tightened_units_is_handed_over_whole_and_in_parts(
    api: Api, tighter: dict[str, int]
) -> None:
    api.claim(C, A, VCPU=6)
    record = {"resource_provider_generation": 3, "inventories": {"VCPU": {"total": 16, **tighter}}}
    api.put(f"/resource_providers/{A}/inventories", record)
    handed_over = {C: allocation({}, consumer_generation=1), D: allocation({A: {"VCPU": 6}})}
    assert api.post("/allocations", handed_over).status_code == 204
    both = {D: allocation({A: {"VCPU": 3}}, consumer_generation=1), C: allocation({A: {"VCPU": 3}})}
    assert api.post("/allocations", both).status_code == 204
    more = {
        D: allocation({A: {"VCPU": 3}}, consumer_generation=2),
        C: allocation({A: {"VCPU": 4}}, consumer_generation=1),
    }
    # Together they want one more: neither may be beside the units, in whichever order they are told.
    for body in (more, dict(reversed(more.items()))):
        assert api.ask("POST", "/allocations", body).status_code == 409


@pytest.mark.parametrize("tighter", TIGHTENED)
def test_units_that_a_reshape_tightens_hold_for_what_it_writes_and_those_of_before_do_not(
    api: Api, tighter: dict[str, int]
) -> None:
    api.claim(C, A, VCPU=6)

    def reshaped(units: dict[str, int], generation: int) -> int:
        inventories = {
            A: {
                "resource_provider_generation": api.generation(A),
                "inventories": {"VCPU": {"total": 16, **units}},
            }
        }
        kept = {C: allocation({A: {"VCPU": 6}}, consumer_generation=generation)}
        return api.ask("POST", "/reshaper", {"inventories": inventories, "allocations": kept}).status_code

    assert reshaped(tighter, 1) == 409
    record = {
        "resource_provider_generation": api.generation(A),
        "inventories": {"VCPU": {"total": 16, **tighter}},
    }
    api.put(f"/resource_providers/{A}/inventories", record)
    assert reshaped(tighter, 1) == 204


def test_post_moves_between_consumers_at_once(api: Api) -> None:
    api.claim(C, A, VCPU=8)
    body = {C: allocation({}, consumer_generation=1), D: allocation({A: {"VCPU": 8}})}
    assert api.post("/allocations", body).status_code == 204
    assert api.get(PATH) == {"allocations": {}}
    assert api.get(f"/allocations/{D}")["allocations"][A]["resources"] == {"VCPU": 8}


def test_post_writes_all_or_nothing(api: Api) -> None:
    body = {C: allocation({A: {"VCPU": 1}}), D: allocation({A: {"VCPU": 8}})}
    assert api.ask("POST", "/allocations", body).status_code == 409
    assert api.get(PATH) == {"allocations": {}}
    assert api.ask("POST", "/allocations", {}).status_code == 400
    assert api.post("/allocations", {C: keyed({A: {"VCPU": 1}})}, version="1.13").status_code == 204


def test_delete_frees_everything_once_without_raising_generations(api: Api) -> None:
    api.claim(C, A, VCPU=1)
    assert api.delete(PATH).status_code == 204
    assert api.generation(A) == 3
    assert api.ask("DELETE", PATH).status_code == 404


def test_usages_are_summed_by_project_user_and_type(api: Api) -> None:
    api.claim(C, A, VCPU=2, MEMORY_MB=64)
    api.put(f"/allocations/{D}", allocation({B: {"VCPU": 3}}, user_id="other", consumer_type="MIGRATION"))
    api.put(f"/allocations/{B}", keyed({B: {"VCPU": 1}}, consumer_generation=None), version="1.28")
    api.put(f"/allocations/{A}", allocation({B: {"VCPU": 1}}, project_id="another"))

    def usages(query: str, version: str = "1.39") -> Any:
        return api.get(f"/usages?project_id=project{query}", version=version)["usages"]

    assert usages("", "1.9") == {"VCPU": 6, "MEMORY_MB": 64}
    assert usages("&user_id=other", "1.37") == {"VCPU": 3}
    assert usages("") == {
        "INSTANCE": {"VCPU": 2, "MEMORY_MB": 64, "consumer_count": 1},
        "MIGRATION": {"VCPU": 3, "consumer_count": 1},
        "unknown": {"VCPU": 1, "consumer_count": 1},
    }
    assert usages("&consumer_type=all") == {"all": {"VCPU": 6, "MEMORY_MB": 64, "consumer_count": 3}}
    assert usages("&consumer_type=unknown") == {"unknown": {"VCPU": 1, "consumer_count": 1}}
    assert usages("&consumer_type=MIGRATION&user_id=user") == {}


@pytest.mark.parametrize(
    ("query", "version"),
    [
        ("", "1.39"),
        ("project_id=", "1.39"),
        ("project_id=p&consumer_type=INSTANCE", "1.37"),
        ("project_id=p&consumer_type=instance", "1.39"),
        ("project_id=p&consumer_type=allX", "1.39"),
    ],
)
def test_wrong_parameters_of_usages_are_400(api: Api, query: str, version: str) -> None:
    assert api.ask("GET", f"/usages?{query}", version=version).status_code == 400

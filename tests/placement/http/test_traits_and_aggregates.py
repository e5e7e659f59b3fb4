"""``/traits``, and the traits and aggregates of a provider."""

import pytest

from support.placement_api import Api, fault, uuid_of

A = uuid_of("a")
TRAITS = f"/resource_providers/{A}/traits"
AGGREGATES = f"/resource_providers/{A}/aggregates"


def body(*traits: str, generation: int = 0) -> dict[str, object]:
    return {"traits": list(traits), "resource_provider_generation": generation}


def test_a_custom_trait_comes_and_goes(api: Api) -> None:
    assert api.put("/traits/CUSTOM_FAST").status_code == 201
    assert api.put("/traits/CUSTOM_FAST").status_code == 204
    assert api.ask("GET", "/traits/CUSTOM_FAST").status_code == 204
    assert api.delete("/traits/CUSTOM_FAST").status_code == 204
    assert api.ask("GET", "/traits/CUSTOM_FAST").status_code == 404
    assert api.ask("DELETE", "/traits/CUSTOM_FAST").status_code == 404


@pytest.mark.parametrize("name", ["HW_CPU_X86_AVX", "FAST", "CUSTOM_fast", "CUSTOM_" + "X" * 249])
def test_only_a_custom_name_can_be_put(api: Api, name: str) -> None:
    assert api.ask("PUT", f"/traits/{name}").status_code == 400


def test_a_standard_trait_stays(api: Api) -> None:
    assert api.ask("DELETE", "/traits/HW_CPU_X86_AVX").status_code == 400


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("name=in:CUSTOM_A,CUSTOM_NONE", ["CUSTOM_A"]),
        ("name=startswith:CUSTOM_", ["CUSTOM_A", "CUSTOM_B"]),
        ("associated=true", ["CUSTOM_A"]),
        ("associated=FALSE&name=startswith:CUSTOM", ["CUSTOM_B"]),
    ],
)
def test_list_filters(api: Api, query: str, found: list[str]) -> None:
    api.provider("a")
    for name in ("CUSTOM_A", "CUSTOM_B"):
        api.put(f"/traits/{name}")
    api.put(TRAITS, body("CUSTOM_A"))
    assert api.get(f"/traits?{query}") == {"traits": found}


@pytest.mark.parametrize("query", ["name=CUSTOM_A", "associated=maybe", "colour=red"])
def test_a_wrong_filter_is_400(api: Api, query: str) -> None:
    assert api.ask("GET", f"/traits?{query}").status_code == 400


def test_a_provider_gets_traits_and_loses_them(api: Api) -> None:
    api.provider("a")
    traits = ["HW_CPU_X86_AVX", "HW_CPU_X86_SSE"]
    assert api.put(TRAITS, body(*traits)).json == body(*traits, generation=1)
    assert api.put(TRAITS, body(*traits, generation=1)).json == body(*traits, generation=1)
    assert api.get(TRAITS) == body(*traits, generation=1)
    assert api.delete(TRAITS).status_code == 204
    assert api.get(TRAITS) == body(generation=2)


def test_wrong_traits_change_nothing(api: Api) -> None:
    api.provider("a")
    assert api.ask("PUT", TRAITS, body("CUSTOM_NONE")).status_code == 400
    assert api.ask("PUT", TRAITS, body("")).status_code == 400
    old = api.ask("PUT", TRAITS, body("HW_CPU_X86_AVX", generation=7))
    assert fault(old) == (409, "placement.concurrent_update")
    assert api.get(TRAITS) == body()


def test_a_trait_in_use_stays(api: Api) -> None:
    api.provider("a")
    api.put("/traits/CUSTOM_A")
    api.put(TRAITS, body("CUSTOM_A"))
    assert api.ask("DELETE", "/traits/CUSTOM_A").status_code == 409


def test_aggregates_have_generations_since_1_19(api: Api) -> None:
    api.provider("a")
    assert api.put(AGGREGATES, [uuid_of("x")], version="1.18").json == {"aggregates": [uuid_of("x")]}
    assert api.generation(A) == 0
    both = {"aggregates": [uuid_of("y"), uuid_of("x")], "resource_provider_generation": 0}
    assert api.put(AGGREGATES, both).json == {**both, "resource_provider_generation": 1}
    assert fault(api.ask("PUT", AGGREGATES, both)) == (409, "placement.concurrent_update")
    assert sorted(api.get(AGGREGATES)["aggregates"]) == [uuid_of("x"), uuid_of("y")]


@pytest.mark.parametrize("aggregates", [["x"], [uuid_of("x")] * 2, [7], "x", [uuid_of("x") + "\n"]])
def test_malformed_aggregates_are_400(api: Api, aggregates: object) -> None:
    api.provider("a")
    assert api.ask("PUT", AGGREGATES, aggregates, version="1.1").status_code == 400
    body = {"aggregates": aggregates, "resource_provider_generation": 0}
    assert api.ask("PUT", AGGREGATES, body).status_code == 400


@pytest.mark.parametrize("what", ["traits", "aggregates", "usages", "allocations"])
def test_an_unknown_provider_is_404(api: Api, what: str) -> None:
    assert api.ask("GET", f"/resource_providers/{uuid_of('none')}/{what}").status_code == 404


@pytest.mark.parametrize("prefix", ["custom", "%25", "_", "CUSTOM%25"])
def test_a_prefix_is_taken_as_it_is(api: Api, prefix: str) -> None:
    """To upstream it is a pattern of SQL, on some databases for letters of either case."""
    api.put("/traits/CUSTOM_A")
    assert api.get(f"/traits?name=startswith:{prefix}")["traits"] == []
    assert api.get("/traits?name=startswith:CUSTOM_")["traits"] == ["CUSTOM_A"]

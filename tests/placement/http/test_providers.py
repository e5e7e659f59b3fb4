"""``/resource_providers``."""

import pytest

from support.placement_api import Api, fault, uuid_of

A = uuid_of("a")


def test_post_answers_with_the_provider_since_1_20(api: Api) -> None:
    before = api.post("/resource_providers", {"name": "a"}, version="1.19")
    assert (before.status_code, before.text) == (201, "")
    assert "/resource_providers/" in before.headers["location"]
    assert "content-type" not in before.headers
    then = api.post("/resource_providers", {"name": "b", "uuid": uuid_of("b").replace("-", "")})
    assert then.json["uuid"] == uuid_of("b")
    assert then.headers["location"].endswith(uuid_of("b"))


@pytest.mark.parametrize(
    ("version", "links", "tree"),
    [
        ("1.0", 3, False),
        ("1.1", 4, False),
        ("1.6", 5, False),
        ("1.11", 6, False),
        ("1.14", 6, True),
    ],
)
def test_a_provider_is_shown_as_its_version_has_it(api: Api, version: str, links: int, tree: bool) -> None:
    api.provider("a")
    shown = api.get(f"/resource_providers/{A}", version=version)
    assert len(shown["links"]) == links
    assert ("root_provider_uuid" in shown) == tree
    assert shown["generation"] == 0


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ({"name": ""}, "1.39"),
        ({"name": "x" * 201}, "1.39"),
        ({"name": 7}, "1.39"),
        ({}, "1.39"),
        ([], "1.39"),
        ({"name": "x", "uuid": "short"}, "1.39"),
        ({"name": "x", "colour": "red"}, "1.39"),
        ({"name": "x", "parent_provider_uuid": None}, "1.13"),
        ({"name": "x", "parent_provider_uuid": uuid_of("none")}, "1.39"),
        ({"name": "a\x00b"}, "1.39"),
        (b'{"name": "\\ud800"}', "1.39"),
        (b'{"name": ', "1.39"),
        (b"\xff", "1.39"),
        (b"", "1.39"),
    ],
)
def test_a_malformed_provider_is_400(api: Api, body: object, version: str) -> None:
    assert api.ask("POST", "/resource_providers", body, version=version).status_code == 400
    assert api.get("/resource_providers") == {"resource_providers": []}


def test_name_and_uuid_are_taken_once(api: Api) -> None:
    api.provider("a")
    for body in ({"name": "a"}, {"name": "b", "uuid": A}):
        assert fault(api.ask("POST", "/resource_providers", body)) == (409, "placement.duplicate_name")


def test_put_renames_and_moves(api: Api) -> None:
    for name in ("a", "b"):
        api.provider(name)
    api.provider("c", parent="b")
    path = f"/resource_providers/{uuid_of('c')}"
    moved = api.put(path, {"name": "d", "parent_provider_uuid": A}).json
    assert (moved["name"], moved["parent_provider_uuid"], moved["generation"]) == ("d", A, 0)
    assert api.put(path, {"name": "d"}).json["parent_provider_uuid"] == A
    assert api.put(path, {"name": "d", "parent_provider_uuid": None}).json["root_provider_uuid"] == uuid_of(
        "c"
    )


@pytest.mark.parametrize("parent", [None, uuid_of("b")])
def test_before_1_37_a_provider_stays_where_it_is(api: Api, parent: str | None) -> None:
    for name in ("a", "b"):
        api.provider(name)
    api.provider("c", parent="a")
    body = {"name": "c", "parent_provider_uuid": parent}
    answer = api.ask("PUT", f"/resource_providers/{uuid_of('c')}", body, version="1.36")
    assert answer.status_code == 400
    assert "parenting a provider is not currently allowed" in answer.text


def test_a_provider_may_not_come_below_itself(api: Api) -> None:
    api.provider("a")
    api.provider("b", parent="a")
    for parent in ("a", "b"):
        body = {"name": "a", "parent_provider_uuid": uuid_of(parent)}
        assert api.ask("PUT", f"/resource_providers/{A}", body).status_code == 400


def test_delete_needs_neither_children_nor_allocations(api: Api) -> None:
    api.provider("a", VCPU=4)
    api.provider("b", parent="a")
    path = f"/resource_providers/{A}"
    cannot = "placement.resource_provider.cannot_delete_parent"
    assert fault(api.ask("DELETE", path)) == (409, cannot)
    api.delete(f"/resource_providers/{uuid_of('b')}")
    api.claim(uuid_of("c"), A, VCPU=1)
    assert fault(api.ask("DELETE", path)) == (409, "placement.resource_provider.inuse")
    api.delete(f"/allocations/{uuid_of('c')}")
    assert api.delete(path).status_code == 204
    assert api.ask("DELETE", path).status_code == 404


@pytest.fixture
def four(api: Api) -> Api:
    """a with 8 VCPU and a trait; b below a in an aggregate; c with 4 VCPU; d with a trait."""
    api.provider("a", VCPU=8)
    api.provider("b", parent="a")
    api.provider("c", VCPU=4)
    api.provider("d")
    api.put("/traits/CUSTOM_FAST")
    for name, generation in (("a", 1), ("d", 0)):
        api.put(
            f"/resource_providers/{uuid_of(name)}/traits",
            {"traits": ["CUSTOM_FAST"], "resource_provider_generation": generation},
        )
    api.put(f"/resource_providers/{uuid_of('b')}/aggregates", [A], version="1.1")
    return api


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", "abcd"),
        ("name=c", "c"),
        ("name=", "abcd"),
        ("name=nobody", ""),
        (f"uuid={A}", "a"),
        (f"uuid={uuid_of('none')}", ""),
        ("resources=VCPU:5", "a"),
        ("resources=VCPU:1&name=c", "c"),
        ("resources=VCPU:99999999999999999999", ""),
        ("required=CUSTOM_FAST", "ad"),
        ("required=!CUSTOM_FAST", "bc"),
        ("required=in:CUSTOM_FAST,HW_CPU_X86_AVX&resources=VCPU:1", "a"),
        ("required=CUSTOM_FAST&required=!HW_CPU_X86_AVX", "ad"),
        (f"member_of={A}", "b"),
        (f"member_of=!{A}", "acd"),
        (f"member_of=in:{A},{uuid_of('other')}", "b"),
        (f"member_of={A}&member_of={uuid_of('other')}", ""),
        (f"in_tree={uuid_of('b')}", "ab"),
        (f"in_tree={uuid_of('none')}", ""),
    ],
)
def test_list_filters(four: Api, query: str, names: str) -> None:
    found = four.get(f"/resource_providers?{query}")["resource_providers"]
    assert "".join(sorted(each["name"] for each in found)) == names


@pytest.mark.parametrize(
    ("query", "version"),
    [
        ("colour=red", "1.39"),
        ("uuid=x", "1.39"),
        (f"uuid={A.replace('-', '')}", "1.39"),
        (f"member_of={A}", "1.2"),
        ("resources=VCPU:1", "1.3"),
        (f"in_tree={A}", "1.13"),
        ("required=CUSTOM_FAST", "1.17"),
        ("required=!CUSTOM_FAST", "1.21"),
        ("required=in:CUSTOM_FAST", "1.38"),
        ("required=in:!CUSTOM_FAST", "1.39"),
        ("required=", "1.39"),
        ("required=CUSTOM_FAST,", "1.39"),
        ("required=CUSTOM_UNKNOWN", "1.39"),
        (f"member_of={A}&member_of={A}", "1.23"),
        (f"member_of=!{A}", "1.31"),
        (f"member_of={A},{A}", "1.39"),
        ("member_of=x", "1.39"),
        ("member_of=in:", "1.39"),
        ("resources=VCPU", "1.39"),
        ("resources=VCPU:0", "1.39"),
        ("resources=VCPU:x", "1.39"),
        ("resources=VCPU:1:2", "1.39"),
        ("resources=", "1.39"),
        ("resources=CUSTOM_UNKNOWN:1", "1.39"),
        ("name=%00", "1.39"),
        ("name=%ff", "1.39"),
    ],
)
def test_a_wrong_filter_is_400(four: Api, query: str, version: str) -> None:
    assert four.ask("GET", f"/resource_providers?{query}", version=version).status_code == 400


def test_before_1_39_the_last_required_counts(four: Api) -> None:
    query = "/resource_providers?required=HW_CPU_X86_AVX&required=CUSTOM_FAST"
    assert len(four.get(query, version="1.38")["resource_providers"]) == 2
    assert four.get(query)["resource_providers"] == []

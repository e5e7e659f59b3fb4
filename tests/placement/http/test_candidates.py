"""``/allocation_candidates``: what the API adds to the search in the fleet."""

from pathlib import Path
from typing import Any

import pytest

from roost.placement.wire.candidate_query import parse_candidate_request
from support.placement_api import Api, fault, uuid_of

HOSTS = "abc"


@pytest.fixture
def hosts(api: Api) -> Api:
    """Three flat hosts and a tree: t with two devices below it."""
    for name in HOSTS:
        api.provider(name, VCPU=8, MEMORY_MB=1024)
    api.put("/resource_classes/CUSTOM_GPU")
    api.provider("t", VCPU=8)
    for name in ("d1", "d2"):
        api.provider(name, parent="t", CUSTOM_GPU=1)
    return api


def ask(api: Api, query: str, version: str = "1.39") -> Any:
    return api.get(f"/allocation_candidates?{query}", version=version)


def test_a_candidate_is_shown_as_its_version_has_it(hosts: Api) -> None:
    old = ask(hosts, "resources=MEMORY_MB:4", "1.10")["allocation_requests"][0]
    assert old["allocations"][0] == {
        "resource_provider": {"uuid": uuid_of("a")},
        "resources": {"MEMORY_MB": 4},
    }
    keyed = {"allocations": {uuid_of("a"): {"resources": {"MEMORY_MB": 4}}}}
    assert ask(hosts, "resources=MEMORY_MB:4", "1.12")["allocation_requests"][0] == keyed
    mapped = {**keyed, "mappings": {"": [uuid_of("a")]}}
    assert ask(hosts, "resources=MEMORY_MB:4")["allocation_requests"][0] == mapped


@pytest.mark.parametrize(
    ("version", "keys", "classes"),
    [
        ("1.16", {"resources"}, {"VCPU"}),
        ("1.17", {"resources", "traits"}, {"VCPU"}),
        ("1.27", {"resources", "traits"}, {"VCPU", "MEMORY_MB"}),
        (
            "1.29",
            {"resources", "traits", "parent_provider_uuid", "root_provider_uuid"},
            {"VCPU", "MEMORY_MB"},
        ),
    ],
)
def test_a_summary_is_shown_as_its_version_has_it(
    hosts: Api, version: str, keys: set[str], classes: set[str]
) -> None:
    hosts.claim(uuid_of("x"), uuid_of("a"), VCPU=2)
    summary = ask(hosts, "resources=VCPU:1", version)["provider_summaries"][uuid_of("a")]
    assert set(summary) == keys
    assert set(summary["resources"]) == classes
    assert summary["resources"]["VCPU"] == {"capacity": 8, "used": 2}


def test_summaries_hold_whole_trees_since_1_29(hosts: Api) -> None:
    query = "resources=CUSTOM_GPU:1"
    assert set(ask(hosts, query, "1.28")["provider_summaries"]) == {uuid_of("d1"), uuid_of("d2")}
    assert set(ask(hosts, query, "1.29")["provider_summaries"]) == {uuid_of(n) for n in ("t", "d1", "d2")}


def test_before_1_29_no_candidate_takes_two_providers_of_a_tree(hosts: Api) -> None:
    query = "resources=VCPU:1,CUSTOM_GPU:1"
    assert ask(hosts, query, "1.28") == {"allocation_requests": [], "provider_summaries": {}}
    assert len(ask(hosts, query, "1.29")["allocation_requests"]) == 2


def test_nothing_found_is_an_empty_answer(hosts: Api) -> None:
    assert ask(hosts, "resources=VCPU:9") == {"allocation_requests": [], "provider_summaries": {}}


def test_limit_cuts_requests_and_summaries(hosts: Api) -> None:
    found = ask(hosts, "resources=VCPU:1&limit=2")
    assert len(found["allocation_requests"]) == len(found["provider_summaries"]) == 2
    assert len(ask(hosts, "resources=VCPU:1&limit=9")["allocation_requests"]) == 4
    assert len(ask(hosts, "resources=VCPU:1&limit=1&limit=3")["allocation_requests"]) == 1
    assert len(ask(hosts, f"resources=VCPU:1&limit={'9' * 5000}")["allocation_requests"]) == 4


@pytest.mark.parametrize(
    ("options", "query", "roots"),
    [
        ({"max_allocation_candidates": 2}, "resources_1=CUSTOM_GPU:1", "tt"),
        ({"max_allocation_candidates": 2, "breadth_first": True}, "resources_1=CUSTOM_GPU:1", "tu"),
        ({"breadth_first": True}, "resources_1=CUSTOM_GPU:1", "tutu"),
        ({"randomize_allocation_candidates": True}, "resources_1=CUSTOM_GPU:1&limit=9", "ttuu"),
    ],
)
def test_options_say_what_is_generated_first(
    tmp_path: Path, empty_database: Path, options: dict[str, Any], query: str, roots: str
) -> None:
    api = Api(tmp_path, empty_database, **options)
    api.put("/resource_classes/CUSTOM_GPU")
    for tree in "tu":
        api.provider(tree)
        for device in ("1", "2"):
            api.provider(tree + device, parent=tree, CUSTOM_GPU=1)
    found = ask(api, query)
    served = [
        next(
            name
            for name in "tu"
            if found["provider_summaries"][device]["root_provider_uuid"] == uuid_of(name)
        )
        for request in found["allocation_requests"]
        for device in request["allocations"]
    ]
    if "randomize_allocation_candidates" in options:
        served.sort()
    assert "".join(served) == roots
    api.close()


@pytest.mark.parametrize(
    ("query", "version", "code"),
    [
        ("", "1.39", "query.missing_value"),
        ("", "1.10", ""),
        ("required=CUSTOM_X", "1.24", "undefined_code"),
        ("resources=VCPU:1&limit=0", "1.39", "undefined_code"),
        ("resources=VCPU:1&limit=x&limit=5", "1.39", "undefined_code"),
        ("resources=VCPU:1&limit=1", "1.15", ""),
        ("resources=VCPU:1&colour=red", "1.39", "undefined_code"),
        ("resources=VCPU:1&required=CUSTOM_X", "1.16", ""),
        ("resources1=VCPU:1", "1.24", "undefined_code"),
        ("resources01=VCPU:1", "1.32", "undefined_code"),
        ("resources_A=VCPU:1", "1.32", "undefined_code"),
        ("resources@=VCPU:1", "1.39", "undefined_code"),
        ("resources_1=VCPU:1&resources_2=VCPU:1", "1.39", "undefined_code"),
        ("resources_1=VCPU:1&resources_2=VCPU:1&group_policy=sometimes", "1.39", "undefined_code"),
        ("resources=VCPU:1&in_tree=x", "1.39", "undefined_code"),
        (f"resources=VCPU:1&in_tree={uuid_of('a')}", "1.30", "undefined_code"),
        ("resources=VCPU:1&required=HW_NUMA_ROOT,!HW_NUMA_ROOT", "1.39", "undefined_code"),
        ("resources=VCPU:1&required=CUSTOM_UNKNOWN", "1.39", "undefined_code"),
        ("resources=CUSTOM_UNKNOWN:1", "1.39", "undefined_code"),
        ("resources=VCPU:1&root_required=HW_NUMA_ROOT", "1.34", "undefined_code"),
        (
            "resources=VCPU:1&root_required=HW_NUMA_ROOT&root_required=HW_NUMA_ROOT",
            "1.39",
            "query.duplicate_key",
        ),
        ("resources=VCPU:1&root_required=HW_NUMA_ROOT,!HW_NUMA_ROOT", "1.39", "query.bad_value"),
        ("resources=VCPU:1&root_required=in:HW_NUMA_ROOT", "1.39", "undefined_code"),
        ("resources=VCPU:1&same_subtree=", "1.39", "query.bad_value"),
        ("resources=VCPU:1&same_subtree=_1", "1.39", "query.bad_value"),
        ("resources=VCPU:1&required_1=HW_NUMA_ROOT", "1.39", "query.bad_value"),
        ("resources_1=VCPU:1&required_2=HW_NUMA_ROOT&group_policy=none", "1.35", "undefined_code"),
        (f"resources_1=VCPU:1&member_of_2={uuid_of('x')}&group_policy=none", "1.35", "undefined_code"),
        (f"resources_1=VCPU:1&in_tree_2={uuid_of('x')}&group_policy=none", "1.35", "undefined_code"),
    ],
)
def test_a_wrong_query_is_400(hosts: Api, query: str, version: str, code: str) -> None:
    answer = hosts.ask("GET", f"/allocation_candidates?{query}", version=version)
    assert fault(answer) == (400, f"placement.{code}" if code else "")


def test_groups_are_parsed_by_suffix() -> None:
    aggregate = uuid_of("x")
    wanted = parse_candidate_request(
        {
            "resources": ["VCPU:1"],
            "resources_NET": ["CUSTOM_VF:2"],
            "required_NET": ["CUSTOM_A,!CUSTOM_B", "in:CUSTOM_C,CUSTOM_D"],
            "member_of_NET": [f"in:{aggregate}", f"!{uuid_of('y')}"],
            "same_subtree": ["_NET"],
            "limit": ["7"],
        },
        39,
    )
    plain, net = wanted.query.groups
    assert (plain.suffix, plain.granular, plain.resources) == ("", False, {"VCPU": 1})
    assert (net.suffix, net.granular, net.resources) == ("_NET", True, {"CUSTOM_VF": 2})
    assert net.required == (frozenset({"CUSTOM_A"}), frozenset({"CUSTOM_C", "CUSTOM_D"}))
    assert net.forbidden == frozenset({"CUSTOM_B"})
    assert net.member_of == (frozenset({aggregate}),)
    assert net.forbidden_aggregates == frozenset({uuid_of("y")})
    assert wanted.query.same_subtree == (frozenset({"_NET"}),)
    assert wanted.limit == 7

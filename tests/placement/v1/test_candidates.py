"""``/v1/allocation_candidates``: pages of one version, whatever is written meanwhile."""

import base64
from typing import Any

import pytest

from roost.placement.v1 import past
from support.placement_api import uuid_of
from support.v1_api import V1Api, fault_of

QUERY = "resources=VCPU:1"
PAGE = f"/v1/allocation_candidates?{QUERY}&limit=2"


@pytest.fixture
def hosts(v1: V1Api) -> V1Api:
    for name in "abcde":
        v1.provider(name, VCPU=8, MEMORY_MB=1024)
    return v1


def served(pages: list[dict[str, Any]]) -> list[str]:
    """The providers of all candidates, in their order."""
    return [
        provider for page in pages for each in page["allocation_requests"] for provider in each["allocations"]
    ]


def test_pages_are_of_one_version_while_others_write(hosts: V1Api) -> None:
    first = hosts.read(PAGE)
    assert first["version"] == hosts.run(hosts.ledger.current()).version
    hosts.claim(uuid_of("x"), uuid_of("c"), VCPU=8)
    hosts.delete(f"/resource_providers/{uuid_of('e')}")
    hosts.provider("f", VCPU=8)
    second = hosts.read(f"{PAGE}&cursor={first['next']}")
    third = hosts.read(f"{PAGE}&cursor={second['next']}")
    assert served([first, second, third]) == [uuid_of(name) for name in "abcde"]
    assert third["next"] is None
    assert {page["version"] for page in (first, second, third)} == {first["version"]}
    assert sorted(served(hosts.pages(QUERY, 3))) == [uuid_of(name) for name in "abdf"]


def test_a_page_is_what_placement_answers(hosts: V1Api) -> None:
    hosts.claim(uuid_of("x"), uuid_of("c"), VCPU=3)
    whole = hosts.get(f"/allocation_candidates?{QUERY}")
    page = hosts.read(f"/v1/allocation_candidates?{QUERY}")
    assert page["allocation_requests"] == whole["allocation_requests"]
    assert page["provider_summaries"] == whole["provider_summaries"]
    assert page["next"] is None


def test_a_page_can_be_read_again_and_with_another_limit(hosts: V1Api) -> None:
    cursor = hosts.read(PAGE)["next"]
    again = [hosts.read(f"{PAGE}&cursor={cursor}") for _ in range(2)]
    assert again[0] == again[1]
    rest = hosts.read(f"/v1/allocation_candidates?{QUERY}&limit=9&cursor={cursor}")
    assert served([rest]) == [uuid_of(name) for name in "cde"]


def test_the_order_of_parameters_does_not_matter_to_a_cursor(hosts: V1Api) -> None:
    path = "/v1/allocation_candidates?limit=2&"
    cursor = hosts.read(f"{path}resources=VCPU:1,MEMORY_MB:2")["next"]
    assert hosts.read(f"{path}resources=MEMORY_MB:2,VCPU:1&cursor={cursor}")["next"]


def test_a_cursor_of_another_query_is_refused(hosts: V1Api) -> None:
    cursor = hosts.read(PAGE)["next"]
    status, text = fault_of(hosts.fetch(f"/v1/allocation_candidates?resources=VCPU:2&cursor={cursor}"))
    assert (status, "another query" in text) == (400, True)


@pytest.mark.parametrize("place", range(0, 60, 5))
def test_a_cursor_altered_anywhere_is_refused(hosts: V1Api, place: int) -> None:
    cursor = hosts.read(PAGE)["next"]
    assert cursor == base64.urlsafe_b64encode(base64.urlsafe_b64decode(cursor)).decode()
    altered = cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
    status, text = fault_of(hosts.fetch(f"{PAGE}&cursor={altered}"))
    # A version of long ago cannot be told from one that is trimmed away.
    assert status in ((400, 410) if place in (0, 5, 10) else (400,)), text


@pytest.mark.parametrize(
    "cursor", ["", "x", "A" * 60, "-" * 60, "_" * 60, "=" * 60, "A" * 5000, "%00", "%ff", "é"]
)
def test_what_is_no_cursor_is_refused(hosts: V1Api, cursor: str) -> None:
    assert hosts.fetch(f"{PAGE}&cursor={cursor}").status_code == 400


def test_trimmed_commits_make_a_version_gone(hosts: V1Api) -> None:
    cursor = hosts.read(PAGE)["next"]
    for number in range(3):
        hosts.claim(uuid_of(f"c{number}"), uuid_of("a"), VCPU=1)
    hosts.run(hosts.ledger.trim(2, float("inf")))
    assert fault_of(hosts.fetch(f"{PAGE}&cursor={cursor}"))[0] == 410


def test_a_version_too_far_back_is_gone(hosts: V1Api, monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = hosts.read(PAGE)["next"]
    for number in range(3):
        hosts.claim(uuid_of(f"c{number}"), uuid_of("a"), VCPU=1)
    monkeypatch.setattr(past, "FARTHEST_COMMITS", 2)
    assert fault_of(hosts.fetch(f"{PAGE}&cursor={cursor}"))[0] == 410
    monkeypatch.setattr(past, "FARTHEST_COMMITS", 3)
    monkeypatch.setattr(past, "FARTHEST_CHANGES", 5)
    assert fault_of(hosts.fetch(f"{PAGE}&cursor={cursor}"))[0] == 410
    monkeypatch.setattr(past, "FARTHEST_CHANGES", 100)
    assert served([hosts.read(f"{PAGE}&cursor={cursor}")]) == [uuid_of(name) for name in "cd"]


def test_few_versions_are_kept(hosts: V1Api) -> None:
    cursors = []
    for number in range(past.MOST_VERSIONS + 2):
        hosts.claim(uuid_of(f"c{number}"), uuid_of("a"), VCPU=1)
        cursors.append(hosts.read(PAGE)["next"])
    for cursor in [*cursors, *reversed(cursors)]:
        assert served([hosts.read(f"{PAGE}&cursor={cursor}")]) == [uuid_of(name) for name in "cd"]
        assert len(hosts.v1.service.past._versions) <= past.MOST_VERSIONS


@pytest.fixture
def trees(v1: V1Api) -> V1Api:
    for host in "abc":
        v1.provider(host, DISK_GB=10)
        for node in range(2):
            v1.provider(f"{host}{node}", host, VCPU=8, MEMORY_MB=1024)
    return v1


def test_processors_of_several_providers_of_a_tree_serve_if_they_may_be_split(trees: V1Api) -> None:
    trees.claim(uuid_of("x"), uuid_of("b1"), VCPU=2)
    query = "resources=VCPU:12,DISK_GB:1&limit=2"
    assert not trees.read(f"/v1/allocation_candidates?{query}")["allocation_requests"]
    split = f"/v1/allocation_candidates?{query}&can_split=VCPU"
    first = trees.read(split)
    second = trees.read(f"{split}&cursor={first['next']}")
    assert second["next"] is None
    found = [*first["allocation_requests"], *second["allocation_requests"]]
    assert [each["allocations"][uuid_of("b0")] for each in found if uuid_of("b") in each["allocations"]] == [
        {"resources": {"VCPU": 8}}
    ]
    assert found[1]["mappings"] == {"": [uuid_of("b"), uuid_of("b0"), uuid_of("b1")]}
    assert {*first["provider_summaries"]} == {uuid_of(name) for name in ("a", "a0", "a1", "b", "b0", "b1")}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("resources=DISK_GB:1&can_split=DISK_GB", "can_split: 'DISK_GB' is none of VCPU, PCPU, MEMORY_MB."),
        ("resources=VCPU:1&can_split=MEMORY_MB", "can_split: the unsuffixed group requests no MEMORY_MB."),
        (
            "resources=VCPU:1&resources_1=VCPU:1&can_split=VCPU",
            "can_split: VCPU cannot be split: a group with a suffix requests it, too.",
        ),
        ("resources=VCPU:1&isolated=_1", "isolated: '_1' is the suffix of no request group."),
    ],
)
def test_what_cannot_be_split_or_isolated_is_refused(trees: V1Api, query: str, text: str) -> None:
    assert fault_of(trees.fetch(f"/v1/allocation_candidates?{query}")) == (400, text)


def test_isolated_groups_share_no_provider_while_others_may(trees: V1Api) -> None:
    groups = "resources_1=VCPU:1&resources_2=VCPU:1&resources_3=MEMORY_MB:1&group_policy=none"
    for isolated, number in (("", 8), ("&isolated=_1,_2", 4), ("&isolated=_1,_2,_3", 0)):
        found = trees.read(f"/v1/allocation_candidates?{groups}{isolated}&limit=1000")["allocation_requests"]
        assert len(found) == 3 * number

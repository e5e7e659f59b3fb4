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
        assert len(hosts.v1.service.past._moments) <= past.MOST_VERSIONS

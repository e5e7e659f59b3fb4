"""The texts that clients or their tests look for in ``detail``, asked of upstream and of Roost.

docs/differences.md has the same table, with the clients that match each text.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from differential.run import Both
from differential.services import Roost, Upstream
from support.placement_api import allocation, uuid_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "differences.md"
SECTION = "## Texts that clients match"

HOST, BARE, NEW = uuid_of("host"), uuid_of("bare"), uuid_of("new")
UNKNOWN, CONSUMER, OTHER = uuid_of("none"), uuid_of("c"), uuid_of("other")
PROVIDERS = "/resource_providers"
TOTAL = {"total": 8}
NO_INVENTORIES = {"inventories": {}, "resource_provider_generation": 3}


class Request(NamedTuple):
    """A request that is refused, at a microversion."""

    method: str
    path: str
    body: Any = None
    version: str = "1.39"


def held(**more: Any) -> Any:
    return allocation({HOST: {"VCPU": 1}}, **more)


SETUP = (
    Request("POST", PROVIDERS, {"name": "host", "uuid": HOST}),
    Request("POST", PROVIDERS, {"name": "bare", "uuid": BARE}),
    Request("POST", f"{PROVIDERS}/{HOST}/inventories", {"resource_class": "VCPU", **TOTAL}),
    Request("POST", f"{PROVIDERS}/{HOST}/inventories", {"resource_class": "DISK_GB", **TOTAL}),
    Request("PUT", f"/allocations/{CONSUMER}", held()),
)
"""The state in which each request is sent: a host, a consumer that holds some of it, and a bare provider."""

TEXTS: dict[str, tuple[Request, ...]] = {
    "JSON does not validate": (
        Request("POST", "/resource_classes", {"name": "fake_class"}),
        Request("POST", "/resource_classes", {"name": "CUSTOM_lower"}),
        Request("POST", "/resource_classes", {"name": "CUSTOM_GPU.INTEL"}),
        Request("PUT", "/resource_classes/fake_class"),
        Request("POST", PROVIDERS, {}),
        Request(
            "PUT", f"{PROVIDERS}/{BARE}/aggregates", {"aggregates": 1, "resource_provider_generation": 0}
        ),
        Request("PUT", f"/allocations/{CONSUMER}", held(consumer_type="lower")),
        Request("POST", "/reshaper", {}),
    ),
    "is not a 'uuid'": (
        Request(
            "PUT",
            f"{PROVIDERS}/{BARE}/aggregates",
            {"aggregates": ["abc", "efg"], "resource_provider_generation": 0},
        ),
        Request(
            "PUT",
            f"{PROVIDERS}/{BARE}/aggregates",
            {"aggregates": ["x" * 60], "resource_provider_generation": 0},
        ),
        Request("PUT", f"{PROVIDERS}/{BARE}/aggregates", ["abc"], "1.1"),
        Request("POST", PROVIDERS, {"name": "new", "uuid": "abc"}),
        Request("POST", PROVIDERS, {"name": "new", "uuid": NEW, "parent_provider_uuid": "abc"}),
        Request("GET", f"{PROVIDERS}?uuid=abc"),
    ),
    f"update conflict: Inventory for 'VCPU' on resource provider '{HOST}' in use.": (
        Request("PUT", f"{PROVIDERS}/{HOST}/inventories", NO_INVENTORIES),
        Request(
            "POST",
            "/reshaper",
            {"inventories": {HOST: NO_INVENTORIES}, "allocations": {OTHER: held(allocations={})}},
        ),
    ),
    f"Inventory for 'VCPU' on resource provider '{HOST}' in use.": (
        Request("DELETE", f"{PROVIDERS}/{HOST}/inventories"),
        Request("DELETE", f"{PROVIDERS}/{HOST}/inventories/VCPU"),
    ),
    "Conflicting resource provider name:": (Request("POST", PROVIDERS, {"name": "host"}),),
    "consumer generation conflict": (
        Request("PUT", f"/allocations/{CONSUMER}", held()),
        Request("PUT", f"/allocations/{OTHER}", held(consumer_generation=1)),
        Request("POST", "/allocations", {CONSUMER: held(consumer_generation=7)}),
        Request(
            "POST",
            "/reshaper",
            {
                "inventories": {
                    HOST: {"inventories": {"VCPU": TOTAL}, "resource_provider_generation": 3},
                },
                "allocations": {CONSUMER: held(consumer_generation=7)},
            },
        ),
    ),
    f"No resource provider with uuid {UNKNOWN} found": (
        Request("GET", f"{PROVIDERS}/{UNKNOWN}"),
        Request("PUT", f"{PROVIDERS}/{UNKNOWN}", {"name": "new"}),
        Request("DELETE", f"{PROVIDERS}/{UNKNOWN}"),
        Request("GET", f"{PROVIDERS}/{UNKNOWN}/inventories"),
        Request("DELETE", f"{PROVIDERS}/{UNKNOWN}/inventories"),
        Request("GET", f"{PROVIDERS}/{UNKNOWN}/inventories/VCPU"),
        Request("DELETE", f"{PROVIDERS}/{UNKNOWN}/inventories/VCPU"),
        Request("PUT", f"{PROVIDERS}/{UNKNOWN}/inventories", NO_INVENTORIES),
        Request("GET", f"{PROVIDERS}/{UNKNOWN}/usages"),
        Request("GET", f"{PROVIDERS}/{UNKNOWN}/traits"),
        Request("GET", f"{PROVIDERS}/{UNKNOWN}/aggregates"),
    ),
    f"No inventory of class VCPU for {BARE}": (Request("GET", f"{PROVIDERS}/{BARE}/inventories/VCPU"),),
    "No inventory of class VCPU found for delete": (
        Request("DELETE", f"{PROVIDERS}/{BARE}/inventories/VCPU"),
    ),
    "Unknown resource class": (
        Request(
            "PUT",
            f"{PROVIDERS}/{BARE}/inventories",
            {"inventories": {"VCPU": TOTAL, "UNKNOWN": TOTAL}, "resource_provider_generation": 0},
        ),
    ),
    "No such resource class": (
        Request("GET", "/resource_classes/UNKNOWN"),
        Request("DELETE", "/resource_classes/UNKNOWN"),
        Request("GET", "/allocation_candidates?resources=UNKNOWN:10"),
        Request("GET", f"{PROVIDERS}?resources=UNKNOWN:10"),
    ),
    "Cannot delete standard resource class": (Request("DELETE", "/resource_classes/VCPU"),),
    "No such trait": (
        Request(
            "PUT",
            f"{PROVIDERS}/{BARE}/traits",
            {"traits": ["CUSTOM_UNKNOWN"], "resource_provider_generation": 0},
        ),
        Request("GET", "/traits/CUSTOM_UNKNOWN"),
        Request("DELETE", "/traits/CUSTOM_UNKNOWN"),
        Request("GET", "/allocation_candidates?resources=VCPU:1&required=CUSTOM_UNKNOWN"),
    ),
    "Please update the generation and try again.": (
        Request(
            "PUT", f"{PROVIDERS}/{BARE}/aggregates", {"aggregates": [], "resource_provider_generation": 9}
        ),
        Request("PUT", f"{PROVIDERS}/{BARE}/traits", {"traits": [], "resource_provider_generation": 9}),
    ),
}
"""A text -> the requests that are refused with it."""

CASES = [(text, request) for text, requests in TEXTS.items() for request in requests]


def ask(service: Upstream | Roost, request: Request) -> tuple[int, Any]:
    """Status, and the value of the answer's body."""
    headers = {
        "x-auth-token": "admin",
        "accept": "application/json",
        "openstack-api-version": f"placement {request.version}",
    }
    body = b""
    if request.body is not None:
        headers["content-type"] = "application/json"
        body = json.dumps(request.body).encode()
    answer = service.ask(request.method, request.path, body, headers)
    return answer.status, answer.json if answer.body else None


@pytest.mark.parametrize(
    ("text", "request_"), CASES, ids=[f"{text}-{number}" for number, (text, _) in enumerate(CASES)]
)
@pytest.mark.parametrize("service", ["upstream", "roost"])
def test_detail_contains_the_text(both: Both, service: str, text: str, request_: Request) -> None:
    asked = getattr(both, service)
    for each in SETUP:
        assert ask(asked, each)[0] < 300
    status, document = ask(asked, request_)
    assert status >= 400
    # The last line, because osc-placement shows no other.
    assert text in document["errors"][0]["detail"].splitlines()[-1]


def test_a_provider_that_is_there_already_has_no_conflict_of_names(both: Both) -> None:
    """Nova takes any other 409 for a race with itself and goes on with the provider that is there."""
    for each in SETUP:
        assert ask(both.roost, each)[0] < 300
    status, document = ask(both.roost, Request("POST", PROVIDERS, {"name": "host", "uuid": HOST}))
    assert status == 409
    assert "Conflicting resource provider name:" not in document["errors"][0]["detail"]


def test_the_table_of_the_documentation_is_the_table_that_is_tested() -> None:
    section = DOCUMENT.read_text().partition(SECTION)[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE))
    generic = {HOST: "UUID", BARE: "UUID", UNKNOWN: "UUID", "VCPU": "CLASS"}
    assert documented == {re.sub("|".join(generic), lambda found: generic[found[0]], text) for text in TEXTS}

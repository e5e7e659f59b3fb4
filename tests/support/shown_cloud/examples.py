"""Addresses of the dashboard's pages on the cloud: of each page those with different content."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx

from roost.dashboard.actions.instance_act import ACTS
from roost.dashboard.actions.maintenance_act import MAINTENANCE_ACTS
from roost.model.names import provider_uuid
from support.shown_cloud import names
from support.shown_cloud.storyteller import HOUR, NOW

Query = Mapping[str, str]


def view(client: httpx.Client, address: str) -> Any:
    """Return the JSON twin of a page."""
    answer = client.get(f"{address}{'&' if '?' in address else '?'}format=json")
    assert answer.status_code == 200, f"{address}: {answer.text}"
    return json.loads(answer.content)


def _hosts(client: httpx.Client) -> list[str]:
    """A host with NUMA cells and devices, one that fails builds, one that is down, one in hostile company."""
    return [f"/ui/hosts/{provider_uuid(name)}" for name in ("b1-01", "b2-02", "b1-lost", "lab-01")]


def _instances(client: httpx.Client) -> list[str]:
    """An instance that runs, one after failed builds, one that was refused, and two with hostile names."""
    found: list[dict[str, Any]] = []
    more: str | None = "/ui/instances"
    while more:
        page = view(client, more)["page"]
        found += page["instances"]
        more = page.get("next") and f"/ui/instances?marker={page['next']}"

    def first(condition: Callable[[dict[str, Any]], bool]) -> str:
        return next(f"/ui/instances/{each['uuid']}" for each in found if condition(each))

    return [
        first(lambda each: each["flavor"] == "gpu1.large" and each["state"] == "active"),
        first(lambda each: each["state"] == "active" and each["attempt"] > 1),
        first(lambda each: each["state"] == "error" and each["attempt"] == 0),
        first(lambda each: each["name"] == names.LONG and each["state"] == "active"),
        first(lambda each: each["name"] == names.BIDI),
    ]


def _maintenance(client: httpx.Client) -> str:
    """The newest maintenance."""
    uuid: str = view(client, "/ui/maintenances")["page"]["maintenances"][0]["uuid"]
    return uuid


def _decisions(client: httpx.Client) -> list[str]:
    """The decisions of those instances, and refusals."""
    runs = []
    for address in _instances(client):
        shown = view(client, address)["instance"]
        if shown["run"]:
            runs.append(f"/ui/decisions/{shown['run']}")
    return runs


_EXAMPLES: Final[Mapping[str, Callable[[httpx.Client], list[str]]]] = {
    "/ui/hosts/{uuid}": _hosts,
    "/ui/instances/{uuid}": _instances,
    "/ui/decisions/{run}": _decisions,
    "/ui/decisions/{run}/without": lambda client: [f"{each}/without" for each in _decisions(client)[1:3]],
    "/ui/what-if": lambda client: [
        "/ui/what-if",
        "/ui/what-if?vcpus=4&memory_mb=8192&drained=b1-01%0Ab1-02&count=20",
        *(f"/ui/what-if?run={each.rpartition('/')[2]}" for each in _decisions(client)[2:5]),
    ],
    **{
        f"/ui/actions/{verb}": lambda _, verb=verb: [
            f"/ui/actions/{verb}?cell=south",
            f"/ui/actions/{verb}?cell=lab&host=lab-01",
        ]
        for verb in ("enable", "disable", "drain")
    },
    **{
        f"/ui/actions/{verb}": lambda client, verb=verb: [
            f"/ui/actions/{verb}?instance={address.rpartition('/')[2]}" for address in _instances(client)[:3]
        ]
        for verb in ACTS
    },
    "/ui/maintenances/{uuid}": lambda client: [f"/ui/maintenances/{_maintenance(client)}"],
    **{
        f"/ui/actions/{verb}": lambda client, verb=verb, act=act: [
            f"/ui/actions/{verb}?maintenance={_maintenance(client)}{'&host=lab-01' if act.of_host else ''}"
        ]
        for verb, act in MAINTENANCE_ACTS.items()
    },
}
"""Of pages that need parameters."""

_QUERIES: Final[Mapping[str, tuple[str, ...]]] = {
    "/ui/series": ("of=decisions", "of=instances&span=month"),
    "/ui/map": ("class=PCPU", "zone=zone-a&class=DISK_GB"),
    "/ui/instances": ("state=error", "search=nothing-of-this-name"),
    "/ui/hosts": ("search=nothing-of-this-name", "state=down"),
}
"""Further queries of pages."""


def examples(client: httpx.Client, path: str) -> list[str]:
    """Return addresses of a page by its path."""
    if path in _EXAMPLES:
        return _EXAMPLES[path](client)
    assert "{" not in path, f"{path} has no examples here"
    return [path, *(f"{path}?{query}" for query in _QUERIES.get(path, ()))]


def past(address: str) -> str:
    """Return the address of a page as it was some hours before."""
    return f"{address}{'&' if '?' in address else '?'}at={NOW - 4 * HOUR:.0f}"

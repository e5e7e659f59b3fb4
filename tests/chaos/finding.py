"""Reads what there is at the end, over HTTP and from the hosts."""

import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import httpx

from chaos.books import SETTLED, Books, Found
from chaos.guests import all_events, running


def every_instance(http: httpx.Client, conductor: str) -> dict[str, dict[str, Any]]:
    """The instances of all pages, by uuid."""
    shown: dict[str, dict[str, Any]] = {}
    params: dict[str, str] = {"limit": "1000"}
    while True:
        answer = http.get(f"{conductor}/v1/instances", params=params)
        answer.raise_for_status()
        page = answer.json()
        shown.update((each["uuid"], each) for each in page["instances"])
        if page["next"] is None:
            return shown
        params["marker"] = page["next"]


def settled(http: httpx.Client, conductor: str, books: Books, seconds: float) -> dict[str, dict[str, Any]]:
    """All instances, once nobody has work with one of them.

    After ``seconds`` without, they are returned as they are: the comparison says what is not settled.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            shown = every_instance(http, conductor)
        except httpx.HTTPError:
            # What was cut off a moment ago is perhaps not reached again yet.
            if time.monotonic() > until:
                raise
        else:
            is_quiet = all(each["state"] in SETTLED for each in shown.values())
            if (is_quiet and not books.deleted & shown.keys()) or time.monotonic() > until:
                return shown
        time.sleep(0.5)


def states(shown: Collection[dict[str, Any]]) -> Counter[str]:
    """How many instances are in each state."""
    return Counter(each["state"] for each in shown)


def found(
    http: httpx.Client, placement: str, shown: dict[str, dict[str, Any]], books: Books, guests: Path
) -> Found:
    """What there is at the end; ``guests`` is the folder of the hosts' files."""
    providers = http.get(f"{placement}/resource_providers").json()["resource_providers"]
    hosts = {each["name"]: each["uuid"] for each in providers}
    consumers = {*shown, *books.accepted}
    used = {}
    holdings: dict[str, dict[str, dict[str, int]]] = {uuid: {} for uuid in consumers}
    for uuid in hosts.values():
        answer = http.get(f"{placement}/resource_providers/{uuid}/allocations").json()
        for consumer, each in answer["allocations"].items():
            holdings.setdefault(consumer, {})[uuid] = each["resources"]
        used[uuid] = http.get(f"{placement}/resource_providers/{uuid}/usages").json()["usages"]
    return Found(shown, list(running(all_events(guests))), holdings, used, hosts)

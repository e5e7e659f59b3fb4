"""Reads what there is at the end, over HTTP and from the hosts."""

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import httpx

from chaos.books import SETTLED, Books, Found
from chaos.guests import CARDS, FLAT, all_events, running
from support.waiting import Deadline


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
    """All instances, once nobody has work with one of them. Moves that wait for a word are confirmed.

    After ``seconds`` without, they are returned as they are: the comparison says what is not settled.
    """
    until = Deadline(seconds)
    while True:
        try:
            shown = every_instance(http, conductor)
        except httpx.HTTPError:
            # What was cut off a moment ago is perhaps not reached again yet.
            if until.passed:
                raise
        else:
            moving = [each["move"] for each in shown.values() if each.get("move") is not None]
            for move in moving:
                # One that is not that far yet is a 409.
                http.post(f"{conductor}/v1/moves/{move}/confirm")
            is_quiet = not moving and all(each["state"] in SETTLED for each in shown.values())
            if (is_quiet and not books.deleted & shown.keys()) or until.passed:
                return shown
        time.sleep(0.5)


def ended_moves(http: httpx.Client, conductor: str) -> Counter[str]:
    """How many moves have ended in each state."""
    ended: Counter[str] = Counter()
    params: dict[str, str] = {"limit": "1000", "under_way": "false"}
    while True:
        page = http.get(f"{conductor}/v1/moves", params=params).raise_for_status().json()
        ended.update(each["state"] for each in page["moves"])
        if page["next"] is None:
            return ended
        params["marker"] = page["next"]


def disabled_hosts(http: httpx.Client, conductor: str) -> list[str]:
    """The hosts that some drain or maintenance has left disabled."""
    found = []
    params: dict[str, str] = {"limit": "1000"}
    while True:
        page = http.get(f"{conductor}/v1/hosts", params=params).raise_for_status().json()
        found += [
            f"host {each['host']} is not enabled again: {each}"
            for each in page["hosts"]
            if not each["enabled"]
        ]
        if page["next"] is None:
            return found
        params["marker"] = page["next"]


def states(shown: Collection[dict[str, Any]]) -> Counter[str]:
    """How many instances are in each state."""
    return Counter(each["state"] for each in shown)


def found(
    http: httpx.Client,
    placement: str,
    shown: dict[str, dict[str, Any]],
    books: Books,
    guests: Path,
    drawn: Mapping[str, str],
) -> Found:
    """What there is at the end; ``guests`` is the folder of the hosts' files.

    ``drawn``: the instances of consumers that were drawn when they were unshelved. What those hold, their
    instances hold.
    """
    providers = http.get(f"{placement}/resource_providers").json()["resource_providers"]
    holdings: dict[str, defaultdict[str, Counter[str]]] = {
        uuid: defaultdict(Counter) for uuid in {*shown, *books.accepted}
    }
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)
    places: defaultdict[str, set[str]] = defaultdict(set)
    for each in providers:
        uuid, root = each["uuid"], each["root_provider_uuid"]
        allocated = http.get(f"{placement}/resource_providers/{uuid}/allocations")
        answer = http.get(f"{placement}/resource_providers/{uuid}/usages")
        if 404 in (allocated.status_code, answer.status_code):
            continue  # a card of a host that has just been reshaped to none
        for consumer, held in allocated.raise_for_status().json()["allocations"].items():
            of = holdings.setdefault(drawn.get(consumer, consumer), defaultdict(Counter))
            of[root].update(held["resources"])
        usages = answer.raise_for_status().json()["usages"]
        used[root].update(usages)
        if "VGPU" in usages:
            places[root].add(FLAT if uuid == root else CARDS)
    hosts = {each["name"]: each["uuid"] for each in providers if each["uuid"] == each["root_provider_uuid"]}
    shapes = {name: " and ".join(sorted(places[uuid])) for name, uuid in hosts.items()}
    return Found(shown, list(running(all_events(guests))), holdings, used, hosts, shapes)


def audited(http: httpx.Client, conductor: str, seconds: float) -> list[str]:
    """What the conductors' audit finds in a round that repairs nothing, and what it has ever repaired.

    All faults are those that conductors, cells and agents mend themselves: the audit has nothing to do.
    """
    url = f"{conductor}/v1/audit"
    number = http.post(f"{url}/rounds", json={"dry_run": True}).raise_for_status().json()["round"]
    until = Deadline(seconds)
    while (seen := http.get(url).raise_for_status().json())["round"] < number:
        if until.passed:
            return [f"round {number} of the audit has not ended after {seconds:g} s: {seen}"]
        time.sleep(0.5)
    wrong = [f"the audit finds {each}" for each in seen["findings"]]
    wrong += [f"the audit could not read cell {name}: {why}" for name, why in seen["unread"].items()]
    repairs = http.get(f"{url}/repairs").raise_for_status().json()["repairs"]
    return wrong + [f"the audit made a repair that nothing provoked: {each}" for each in repairs]

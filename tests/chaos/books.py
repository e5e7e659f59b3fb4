"""What users know of their instances, and how that differs from what there is at the end."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chaos.guests import Event

SETTLED = {"active", "stopped", "lost", "shelved", "error"}
"""States in which nobody has work with an instance."""

PLACED = {"active", "stopped", "lost"}
"""Those in which it holds what it claims on a host."""


class Wanted(NamedTuple):
    """A request for instances. ``name`` is in its flavor's name, by which its instances are known."""

    name: str
    vcpus: int
    memory_mb: int
    count: int
    gpus: int = 0

    @property
    def flavor(self) -> dict[str, object]:
        """The flavor that is asked for."""
        flavor: dict[str, object] = {"vcpus": self.vcpus, "memory_mb": self.memory_mb, "name": self.name}
        if self.gpus:
            flavor["extra_specs"] = {"resources:VGPU": f"{self.gpus}"}
        return flavor

    @property
    def amounts(self) -> dict[str, int]:
        """What an instance of it holds, on its host and what is below it."""
        amounts = {"VCPU": self.vcpus, "MEMORY_MB": self.memory_mb, "VGPU": self.gpus}
        return {name: amount for name, amount in amounts.items() if amount}


@dataclass
class Books:
    """What was answered to users, and what they got no answer to.

    ``requests`` by name. ``accepted``: the instances that a request was answered with. ``perhaps``: names of
    requests without an answer. ``deleted``: deletions that were answered, ``perhaps_deleted``: others.
    ``wrong``: answers that nobody should ever get. ``died``: hosts that have lost their power.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    requests: dict[str, Wanted] = field(default_factory=dict)
    accepted: dict[str, str] = field(default_factory=dict)
    perhaps: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    perhaps_deleted: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    died: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def lifetimes(self) -> int:
        """How many instances were asked for and deleted."""
        return len(self.deleted)


class Found(NamedTuple):
    """What there is at the end.

    ``shown``: instances by uuid, as the API shows them. ``guests``: where each guest runs. ``holdings``: of
    each consumer, what it holds by root provider, of the whole tree. ``used``: of each root provider, what is
    used of its tree. ``hosts``: the root provider of each host. ``shapes``: by host, where placement has its
    virtual GPUs.
    """

    shown: Mapping[str, Mapping[str, Any]]
    guests: Sequence[tuple[str, Event]]
    holdings: Mapping[str, Mapping[str, Mapping[str, int]]]
    used: Mapping[str, Mapping[str, int]]
    hosts: Mapping[str, str]
    shapes: Mapping[str, str]


def differences(books: Books, found: Found, shapes: Mapping[str, str]) -> list[str]:
    """Where users' books, the API, hosts and placement do not agree. ``shapes``: those that hosts began
    with."""
    wrong = [*books.wrong, *_of_users(books, found), *_of_guests(found), *_of_claims(found, books)]
    for host in sorted(shapes.keys() | found.shapes.keys()):
        if shapes.get(host) != found.shapes.get(host):
            there = found.shapes.get(host)
            wrong.append(f"host {host} is {there} in placement, and began as {shapes.get(host)}")
    return wrong


def _of_users(books: Books, found: Found) -> list[str]:
    shown = found.shown
    wanted = books.accepted.keys() - books.deleted - books.perhaps_deleted
    wrong = [f"instance {uuid} is lost" for uuid in sorted(wanted - shown.keys())]
    wrong += [
        f"instance {uuid} was deleted and is {shown[uuid]}" for uuid in sorted(books.deleted & shown.keys())
    ]
    of_requests: Counter[str] = Counter()
    for uuid, each in shown.items():
        if each["state"] not in SETTLED:
            wrong.append(f"instance {uuid} is not settled: {each}")
        elif each["state"] == "error" and not each["reason"]:
            wrong.append(f"instance {uuid} is in error without a reason: {each}")
        elif each["state"] in PLACED and not (each["host"] and each["cell"]):
            wrong.append(f"instance {uuid} is nowhere: {each}")
        elif each["state"] == "lost" and each["host"] not in books.died:
            wrong.append(f"instance {uuid} is lost on a host that never lost its power: {each}")
        if uuid not in books.accepted:
            of_requests[each["flavor"]] += 1
            if each["flavor"] not in books.perhaps:
                wrong.append(f"nobody asked for instance {uuid}: {each}")
    for name, count in of_requests.items():
        if name in books.requests and count != books.requests[name].count:
            asked = books.requests[name].count
            wrong.append(f"request {name} was for {asked} instances and has {count}")
    return wrong


def _of_guests(found: Found) -> list[str]:
    wrong = []
    guests: dict[str, Event] = {}
    for uuid, event in found.guests:
        if uuid in guests:
            wrong.append(f"instance {uuid} runs twice: {guests[uuid]} and {event}")
        guests[uuid] = event
    active = {uuid: each for uuid, each in found.shown.items() if each["state"] == "active"}
    for uuid in sorted(guests.keys() - active.keys()):
        state = found.shown[uuid]["state"] if uuid in found.shown else "gone"
        wrong.append(f"instance {uuid} is {state}, but has a guest: {guests[uuid]}")
    for uuid, each in sorted(active.items()):
        guest = guests.get(uuid)
        if guest is None:
            wrong.append(f"instance {uuid} is active, but has no guest: {each}")
        elif (guest.host, guest.attempt) != (each["host"], each["attempt"]):
            wrong.append(f"instance {uuid} is shown as {each}, but its guest is {guest}")
    return wrong


def _of_claims(found: Found, books: Books) -> list[str]:
    wrong = []
    used: dict[str, Counter[str]] = {provider: Counter() for provider in found.hosts.values()}
    for uuid, held in found.holdings.items():
        each = found.shown.get(uuid)
        expected: dict[str, dict[str, int]] = {}
        if each is not None and each["state"] in PLACED:
            expected = {found.hosts[each["host"]]: books.requests[each["flavor"]].amounts}
        if held != expected:
            wrong.append(f"instance {uuid} holds {held}, not {expected}: {each}")
        for provider, resources in held.items():
            used.setdefault(provider, Counter()).update(resources)
    for provider, counts in used.items():
        there = {name: amount for name, amount in found.used.get(provider, {}).items() if amount}
        if there != dict(counts):
            wrong.append(f"provider {provider} has {there} used, but its consumers hold {dict(counts)}")
    return wrong

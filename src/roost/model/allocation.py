"""Allocations, the consumers that own them, and allocation candidates."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from roost.model.assignment import Assignment

Resources = dict[str, int]
"""Resource class -> amount, in units of the class."""

Allocations = dict[str, Resources]
"""All allocations of one consumer: provider uuid -> resource class -> amount."""


def total(amounts: Iterable[Mapping[str, int]]) -> Resources:
    """Return the sum of some amounts by resource class."""
    found: Resources = {}
    for each in amounts:
        for name, amount in each.items():
            found[name] = found.get(name, 0) + amount
    return found


UNKNOWN_TYPE = "unknown"
"""Consumer type of a consumer that was written without one.

Source: microversion 1.38, which added consumer types.
"""


class Consumer(msgspec.Struct, frozen=True):
    """The owner of allocations, usually an instance or a migration.

    ``generation`` increases by one with each write of the consumer's allocations, from 1.
    Source: microversion 1.28, which added consumer generations.
    ``group`` is the uuid of the server group that the consumer is a member of, None for no group. A write
    that names a group sets it, any other write keeps it.
    ``assignment`` is the hardware of a node that the consumer holds, None for none. A write that states an
    assignment sets it. Any other write keeps it as long as the consumer has allocations in the node's tree.
    """

    uuid: str
    project_id: str
    user_id: str
    generation: int
    consumer_type: str = UNKNOWN_TYPE
    group: str | None = None
    assignment: Assignment | None = None


class KeptAllocations(msgspec.Struct, frozen=True):
    """All allocations of a consumer, which a claim keeps and adds to. ``generation``: as they were read.

    ``assignment``: the consumer's hardware before the claim, which moves it to the new host; None for none.
    """

    allocations: Allocations
    generation: int
    assignment: Assignment | None = None


class HandedClaim(KeptAllocations, frozen=True, kw_only=True):
    """All that an instance holds, which its migration takes over while the instance claims another host.

    ``consumer``: the uuid of the migration, which no consumer has ever had.
    """

    consumer: str


AFFINITY: Final = "affinity"
"""All members are on one host."""
ANTI_AFFINITY: Final = "anti-affinity"
"""No host has more than ``max_per_host`` members."""
SOFT_AFFINITY: Final = "soft-affinity"
"""Hosts with members are preferred. No claim is refused."""
SOFT_ANTI_AFFINITY: Final = "soft-anti-affinity"
"""Hosts without members are preferred. No claim is refused."""

GroupPolicy = Literal["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"]
"""The policies of server groups. Source: Nova's API, microversion 2.15."""


class GroupClaim(msgspec.Struct, frozen=True):
    """The server group that a claim makes its consumer a member of, and the condition of the claim.

    ``group`` is the group's uuid. ``max_per_host`` is the most members on a host, for ``anti-affinity``.
    ``held_by`` is a consumer that holds the present host for the one of the claim, as Nova's migrations do;
    None if there is none. As a member it counts as the same.
    Source: ``rules.max_server_per_host`` of Nova's API, microversion 2.64.
    """

    group: str
    policy: GroupPolicy
    max_per_host: int = 1
    held_by: str | None = None


class Candidate(msgspec.Struct, frozen=True):
    """One allocation candidate: allocations that satisfy a whole query and fit all together.

    ``root`` is the uuid of the anchor, the root of the tree that the candidate belongs to. ``mappings``:
    suffix of a request group -> uuids of the providers that serve it ("" is the unsuffixed group).
    ``assignment`` is the hardware of the node that a filter has chosen. ``limits`` are the limits that
    filters have set for the host, by name, as in Nova.
    """

    root: str
    allocations: Allocations
    mappings: dict[str, list[str]]
    assignment: Assignment | None = None
    limits: dict[str, object] = {}


def sum_of(first: Allocations, second: Allocations) -> Allocations:
    """Return the sums of two consumers' allocations, by provider and resource class."""
    total = {provider: dict(resources) for provider, resources in first.items()}
    for provider, resources in second.items():
        there = total.setdefault(provider, {})
        for name, amount in resources.items():
            there[name] = there.get(name, 0) + amount
    return total


def allocations_text(allocations: Allocations, names: Mapping[str, str]) -> str:
    """Return allocations as text. ``names``: provider names by uuid; without a name, the uuid."""
    return "; ".join(
        ", ".join(f"{amount} {name}" for name, amount in resources.items()) + f" of {names.get(uuid, uuid)}"
        for uuid, resources in allocations.items()
    )

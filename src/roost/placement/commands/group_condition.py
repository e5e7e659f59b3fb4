"""The condition of a claim that names a server group, checked on the state that the claim is committed on.

If a filter counted members first and the claim came later, two requests of one anti-affinity group could get
the same host. Here no other claim comes in between: the ledger runs the command again if another writer was
first.
"""

from collections.abc import Sequence

from roost.fleet import Fleet
from roost.ledger import Held, State
from roost.model.allocation import AFFINITY, ANTI_AFFINITY, GroupClaim
from roost.placement.errors import GroupRefused

_NAMED = 5
"""Members that the text of an error names. The error itself has all of them."""


def judge(state: State, consumer: str, claim: GroupClaim, before: Held | None) -> None:
    """Check the claim of a consumer whose write is applied to ``state``. ``before``: its earlier allocations.

    A host that the consumer was on already as a member of the group is not checked again: a write on the same
    host passes even if the group's policy was violated before. The same holds for the hosts of the consumer
    that holds for it (``claim.held_by``), which is no other member.

    Raises: `GroupRefused`. The caller undoes the write.
    """
    fleet = state.fleet
    held = () if claim.held_by is None else fleet.groups.hosts_of(claim.group, claim.held_by)
    kept = set(held)
    if before is not None and before.consumer.group == claim.group:
        kept.update(fleet.hosts_of(fleet.row(provider) for provider in before.allocations))
    hosts = [host for host in fleet.groups.hosts_of(claim.group, consumer) if host not in kept]
    if claim.policy == ANTI_AFFINITY:
        for host in hosts:
            if fleet.groups.count(claim.group, host) > claim.max_per_host:
                _refuse_anti_affinity(fleet, consumer, claim, host)
    elif claim.policy == AFFINITY and fleet.groups.size(claim.group) > (2 if held else 1):
        for host in hosts:
            if fleet.groups.count(claim.group, host) == 1:
                _refuse_affinity(fleet, consumer, claim, host)


def _refuse_anti_affinity(fleet: Fleet, consumer: str, claim: GroupClaim, host: int) -> None:
    there = sorted(
        member
        for member, hosts in fleet.groups.members(claim.group).items()
        if host in hosts and member not in (consumer, claim.held_by)
    )
    raise GroupRefused(
        f"Server group {claim.group} (anti-affinity, max_server_per_host {claim.max_per_host}) refuses "
        f"consumer {consumer}: host {_host(fleet, host)} has the members {_list(there)}.",
        group=claim.group,
        host=fleet.uuid(host),
        members=tuple(there),
    )


def _refuse_affinity(fleet: Fleet, consumer: str, claim: GroupClaim, host: int) -> None:
    others = {
        member: hosts
        for member, hosts in fleet.groups.members(claim.group).items()
        if member not in (consumer, claim.held_by)
    }
    elsewhere = sorted({row for hosts in others.values() for row in hosts} - {host})
    raise GroupRefused(
        f"Server group {claim.group} (affinity) refuses consumer {consumer}: host {_host(fleet, host)} has "
        f"no member, the members {_list(sorted(others))} are on "
        f"{_list([_host(fleet, row) for row in elsewhere])}.",
        group=claim.group,
        host=fleet.uuid(host),
        members=tuple(sorted(others)),
    )


def _host(fleet: Fleet, row: int) -> str:
    return f"{fleet.name(row)} ({fleet.uuid(row)})"


def _list(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")

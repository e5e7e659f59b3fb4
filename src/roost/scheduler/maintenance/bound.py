"""The least number of waves: what is in use must have room outside each wave."""

from collections import Counter
from collections.abc import Collection
from itertools import accumulate
from typing import NamedTuple

from roost.scheduler.maintenance.plan import FleetToMaintain


class WaveBound(NamedTuple):
    """A lower bound. ``reason``: in words."""

    waves: int
    reason: str


def least_waves(fleet: FleetToMaintain, emptied: Collection[str]) -> WaveBound:
    """Return the least number of waves in which the hosts ``emptied`` of a component can be emptied.

    For each class: the hosts outside a wave must hold the guests of all hosts that take guests, with a
    reserve even without any one of them. So the room for guests on the hosts of a wave is at most what is
    free, less that of the smallest host for the reserve. Packing, filters and server groups may need more
    waves. Hosts that have no reserve before a wave either may let it be larger.
    """
    if not emptied:
        return WaveBound(0, "no host is to be emptied")
    bound = WaveBound(1, "hosts are emptied")
    if fleet.most_hosts is not None:
        bound = max(bound, by_number(len(emptied), fleet.most_hosts))
    taking = {host.name: host for host in fleet.hosts if host.takes_guests}
    tightness = 0.0
    for resource_class in sorted({name for guest in fleet.guests for name in guest.amounts}):
        used = Counter[str]()
        for guest in fleet.guests:
            used[guest.host] += guest.amounts.get(resource_class, 0)
        # What is taken stays where it is. A host that is overfull holds more than it has room for.
        whole = {name: max(host.room(resource_class), used[name]) for name, host in taking.items()}
        free = sum(whole.values()) - sum(used[name] for name in taking)
        if fleet.reserve:
            free -= min(whole.values(), default=0)
        of_waves = sorted(whole[name] for name in emptied if name in whole)
        most = sum(total <= free for total in accumulate(of_waves))
        if not 0 < most < len(of_waves):
            # All may be empty together, or none: why not is said of each host.
            continue
        waves = max(_divided(len(of_waves), most), _divided(sum(of_waves), free))
        if (waves, sum(of_waves) / free) > (bound.waves, tightness):
            tightness = sum(of_waves) / free
            reserve = ", less the smallest host as a reserve" if fleet.reserve else ""
            said = f"{free} {resource_class} are free{reserve}, and the {len(of_waves)} hosts to be emptied"
            said = f"{said} have {sum(of_waves)}: at most {most} of them can be empty together"
            bound = WaveBound(waves, said)
    sizes = Counter(guest.group for guest in fleet.guests if guest.host in taking)
    for group, members in sizes.items():
        if group is not None and group in fleet.groups:
            found = _by_group(members, fleet.groups[group], emptied, taking)
            bound = found if found.waves > bound.waves else bound
    return bound


def _by_group(members: int, most_there: int, emptied: Collection[str], taking: Collection[str]) -> WaveBound:
    """Return the least number of waves with which an anti-affinity group has hosts enough outside each."""
    most = len(taking) - _divided(members, most_there)
    hosts = sum(name in taking for name in emptied)
    if not 0 < most < hosts:
        return WaveBound(1, "")
    said = f"an anti-affinity group has {members} members on {len(taking)} hosts"
    return WaveBound(_divided(hosts, most), f"{said}: at most {most} of them can be empty together")


def by_number(hosts: int, most: int) -> WaveBound:
    """Return the least number of waves of so many hosts in all, and at most so many in one."""
    return WaveBound(_divided(hosts, most), f"a wave has at most {most} of {hosts} hosts")


def _divided(amount: int, by: int) -> int:
    """Return a quotient, rounded up."""
    return -(-amount // by)

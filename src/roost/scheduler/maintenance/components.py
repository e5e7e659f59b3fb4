"""Components: sets of hosts between which guests can move. Hosts of two cells are never in one."""

from collections import defaultdict
from collections.abc import Iterator

from msgspec.structs import replace

from roost.scheduler.maintenance.plan import FleetToMaintain, GuestToMove, HostToMaintain


def components_of(fleet: FleetToMaintain) -> Iterator[FleetToMaintain]:
    """Yield the components of a fleet that have selected hosts, by the order of their first hosts."""
    parent = {host.name: host.name for host in fleet.hosts}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    reached: dict[str, str] = {}
    for guest in fleet.guests:
        first = reached.get(guest.kind)
        if first is None:
            first = guest.host
            for name in fleet.kinds[guest.kind] & parent.keys():
                parent[root(name)] = root(first)
            reached[guest.kind] = first
        parent[root(guest.host)] = root(first)
    hosts: defaultdict[str, list[HostToMaintain]] = defaultdict(list)
    guests: defaultdict[str, list[GuestToMove]] = defaultdict(list)
    for host in fleet.hosts:
        hosts[root(host.name)].append(host)
    for guest in fleet.guests:
        guests[root(guest.host)].append(guest)
    for name, of in hosts.items():
        if any(host.selected for host in of):
            yield replace(fleet, hosts=tuple(of), guests=tuple(guests[name]))

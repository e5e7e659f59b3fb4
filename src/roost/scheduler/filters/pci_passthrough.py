"""Hosts with free PCI devices for the request's aliases and ports, by the pools that nodes report."""

from collections.abc import Hashable, Sequence

import msgspec
import numpy as np

from roost.fleet.columns import Bools
from roost.fleet.hardware.pci_choice import DeviceConditions, FreePools, devices_of_providers
from roost.fleet.hardware.pci_ports import on_interface
from roost.model.allocation import Candidate
from roost.model.assignment import AssignedDevices, Assignment
from roost.model.spec import PciRequest
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.nodes.pci_columns import PciColumns, names_cards
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugins import Lack
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class PciPassthroughFilter:
    """The node reports free PCI devices for ``pci_passthrough:alias`` and the PCI requests of ports, those
    that claims have taken since left out; allocation candidates get the devices assigned."""

    name = "PciPassthroughFilter"
    looks_at = Looks.REPORT | Looks.TREE
    depends_on_claims = True

    def key(self, request: SchedulingRequest) -> Hashable | None:
        requests = request.demand.devices
        return wanted_of(requests) if requests else None

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        requests = request.demand.devices
        if not requests:
            return None
        pci = hosts.table.pci
        enough: Bools = np.ones(len(hosts), dtype=np.bool_)
        for each in requests:
            enough &= pci.suitable(each, hosts.index) >= each.count
        alike = AlikePools(requests, pci)
        known: dict[Hashable, bool] = {}
        for position in np.flatnonzero(enough).tolist():
            if not alike.apart or hosts.assigned(position):
                key = alike.key(hosts, position)
                fits = known.get(key)
                if fits is None:
                    fits = known[key] = free_pools(hosts, position).choose(requests) is not None
                enough[position] = fits
        return enough

    def narrow(
        self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
    ) -> Sequence[Candidate]:
        requests = request.demand.devices
        if not requests:
            return candidates
        pools = free_pools(host)
        chosen: dict[Hashable, tuple[AssignedDevices, ...] | None] = {}
        every = requests
        left: list[Candidate] = []
        for candidate in candidates:
            assignment = candidate.assignment
            if assignment is not None and assignment.devices:
                left.append(candidate)
                continue
            requests = on_their_cards(every, host, candidate)
            asked = devices_of_providers(requests, candidate.mappings), wanted_of(requests)
            if asked not in chosen:
                chosen[asked] = pools.choose(requests, mappings=candidate.mappings)
            devices = chosen[asked]
            if devices is not None:
                node = host.table.nodes[host.index.item(0)]
                cells = () if assignment is None else assignment.cells
                left.append(msgspec.structs.replace(candidate, assignment=Assignment(node, cells, devices)))
        return left

    def lack(self, host: OneHost, request: SchedulingRequest, progress: GroupPlacement) -> Lack | None:
        requests = request.demand.devices
        if not requests:
            return None
        pools = free_pools(host)
        for each in requests:
            wanted = DeviceConditions(each)
            free = sum(pool.count for pool in pools.pools if wanted.may_get(pool))
            if free < each.count:
                what = f"port {each.requester_id or each.id}" if each.alias is None else f"alias {each.alias}"
                text = f"has {free} of the {each.count} PCI devices free that {what} asks for"
                return Lack(text, (each.count - free) / each.count)
        if pools.choose(requests) is None:
            return Lack("has too few PCI devices free for all requests together", 0.1)
        return Lack("has PCI devices free, but not of the providers that placement offers", 0.1)


def on_their_cards(
    requests: Sequence[PciRequest], host: OneHost, candidate: Candidate
) -> tuple[PciRequest, ...]:
    """Return the requests, those of ports whose bandwidth a provider serves for that provider's card only.

    A port's request group has the port's id as its suffix.
    """
    found = []
    for each in requests:
        serving = candidate.mappings.get(each.requester_id, ()) if each.requester_id else ()
        name = host.provider_name(serving[0]) if len(serving) == 1 else None
        found.append(each if name is None else on_interface(each, name))
    return tuple(found)


def wanted_of(requests: Sequence[PciRequest]) -> Hashable:
    """Return a key of all parts of the requests that decide which devices suit."""
    return tuple([each.wanted for each in requests])


def free_pools(hosts: HostView, position: int = 0) -> FreePools:
    """Return the free PCI devices of a host: those that it reports, less those that claims took since."""
    pools = hosts.table.pci.pools(hosts.index.item(position))
    assigned = hosts.assigned(position)
    return pools.without(each for one in assigned.values() for each in one.devices) if assigned else pools


class AlikePools:
    """Groups hosts whose free devices are equal for the requests, so that one host of a group is judged.

    ``apart``: no device suits two of the requests. Then a host with enough devices for each request alone has
    enough for all.
    """

    def __init__(self, requests: Sequence[PciRequest], pci: PciColumns) -> None:
        # Physical functions exclude virtual ones by their addresses.
        self._by_kind = not names_cards(requests) and not any(
            DeviceConditions(each).names_physical for each in requests
        )
        matching = pci.matching(requests)[0] if self._by_kind else []
        kinds = [frozenset(np.flatnonzero(may_get).tolist()) for _, may_get in matching]
        # Devices that no request may get matter too: they count as close to cells.
        self._kinds = frozenset[int]().union(*(np.flatnonzero(suit).tolist() for suit, _ in matching))
        # Devices beyond the number that all requests ask for make no difference.
        self._most = sum(each.count for each in requests)
        together = len(frozenset[int]().union(*kinds)) == sum(map(len, kinds))
        self.apart = len(requests) == 1 or (self._by_kind and together)

    def key(self, hosts: HostView, position: int) -> Hashable:
        """Return a key that is equal for hosts that are alike."""
        if hosts.assigned(position):
            return position
        index, pci = hosts.index.item(position), hosts.table.pci
        if not self._by_kind:
            return pci.pools(index)
        kinds, most = self._kinds, self._most
        counted = pci.counted(index)
        # Without requests all devices count: the cells close to them are tried last.
        if not most:
            return counted
        return tuple([(kind, min(count, most)) for kind, count in counted if kind in kinds])


PLUGIN = PciPassthroughFilter

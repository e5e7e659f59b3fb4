"""Hosts with NUMA cells that the guest's cells fit on, by the topologies that nodes report."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from roost.fleet.columns import Bools
from roost.fleet.hardware.fit import Fit, fit, misfit
from roost.fleet.hardware.guest_topology import GuestTopology
from roost.fleet.hardware.pci_choice import Mappings, devices_of_providers
from roost.model.allocation import Candidate
from roost.model.assignment import Assignment
from roost.model.spec import NetworkMetadata, PciRequest
from roost.process.options import OptionStruct, option
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.filters.pci_passthrough import AlikePools, free_pools, on_their_cards, wanted_of
from roost.scheduler.nodes.near_cells import DevicesNearCells
from roost.scheduler.nodes.numa_columns import is_exact
from roost.scheduler.nodes.numa_topologies import NumaTopologies, limits_of
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugins import Lack
from roost.scheduler.request.demand.numa_groups import NUMA_ROOT, is_of_tree
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class NumaOptions(OptionStruct, frozen=True, group="compute"):
    """``packing_host_numa_cells_allocation_strategy``: host cells in use are tried before empty ones."""

    packing_host_numa_cells_allocation_strategy: bool = option(
        False,
        help="A guest gets the NUMA cells of its host that are used most, so that others stay whole. "
        "Otherwise it gets those that are used least.",
    )


class _Wanted(NamedTuple):
    """The parts of a request that its fit on a host depends on."""

    guest: GuestTopology
    network: NetworkMetadata | None
    requests: tuple[PciRequest, ...]


class NUMATopologyFilter:
    """The cells of the guest that flavor and image ask for (NUMA nodes, page sizes, dedicated or mixed CPUs,
    persistent memory) fit on cells of the host, beside what claims have taken since its report; allocation
    candidates get cells, CPUs, pages and devices assigned."""

    name = "NUMATopologyFilter"
    looks_at = Looks.REPORT | Looks.TREE
    depends_on_claims = True
    OPTIONS = NumaOptions

    def __init__(self, options: NumaOptions) -> None:
        self._pack = options.packing_host_numa_cells_allocation_strategy
        self._of_table: WeakKeyDictionary[NodeTable, NumaTopologies] = WeakKeyDictionary()

    def key(self, request: SchedulingRequest) -> Hashable | None:
        wanted = _wanted(request)
        if wanted is None:
            return None
        return wanted.guest, wanted.network, wanted_of(wanted.requests)

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        wanted = _wanted(request)
        if wanted is None:
            return None
        topologies = self._topologies(hosts)
        if not wanted.requests and wanted.network is None and is_exact(wanted.guest):
            fits = topologies.fits(wanted.guest, hosts)
        else:
            close = topologies.fits_close(wanted.guest, wanted.network, wanted.requests, hosts)
            fits = self._one_by_one(hosts, wanted) if close is None else close
        return fits | hosts.with_trait(NUMA_ROOT) if _trees_may_serve(request) else fits

    def _one_by_one(self, hosts: HostView, wanted: _Wanted) -> Bools:
        """Return the hosts that a request fits on, if columns cannot decide it: fits one of each state."""
        topologies = self._topologies(hosts)
        fits = topologies.fits(wanted.guest, hosts)
        alike = AlikePools(wanted.requests, hosts.table.pci)
        known: dict[Hashable, bool] = {}
        for position in np.flatnonzero(fits).tolist():
            ratios = limits_of(hosts.table.report(hosts.index.item(position)))
            key = topologies.topology(hosts, position), ratios, alike.key(hosts, position)
            if key not in known:
                known[key] = self._fit(hosts, position, wanted) is not None
            fits[position] = known[key]
        return fits

    def narrow(
        self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
    ) -> Sequence[Candidate]:
        wanted = _wanted(request)
        if wanted is None:
            return candidates
        node = host.table.nodes[host.index.item(0)]
        limits = {"numa_topology": self._limits(host, wanted)}
        # Without devices the fit is the same for all candidates.
        found = None if wanted.requests else self._fit(host, 0, wanted)
        left: list[Candidate] = []
        fits: dict[Hashable, Fit | None] = {}
        of_trees = _trees_may_serve(request)
        for candidate in candidates:
            if of_trees and is_of_tree(candidate):
                left.append(candidate)
                continue
            if wanted.requests:
                requests = on_their_cards(wanted.requests, host, candidate)
                asked = devices_of_providers(requests, candidate.mappings), wanted_of(requests)
                if asked not in fits:
                    fits[asked] = self._fit(host, 0, wanted._replace(requests=requests), candidate.mappings)
                found = fits[asked]
            if found is not None:
                assignment = Assignment(node, found.cells, found.devices)
                left.append(
                    msgspec.structs.replace(
                        candidate, assignment=assignment, limits={**candidate.limits, **limits}
                    )
                )
        return left

    def lack(self, host: OneHost, request: SchedulingRequest, progress: GroupPlacement) -> Lack | None:
        wanted = _wanted(request)
        if wanted is None:
            return None
        topology = self._topologies(host).topology(host)
        if topology is None:
            return Lack("reports no NUMA topology", 1.0)
        pools = free_pools(host)
        if wanted.requests and not pools:
            return Lack("has no PCI devices free", 1.0)
        found = misfit(
            topology,
            wanted.guest,
            limits_of(host.table.report(host.index.item(0))),
            network=wanted.network,
            devices=DevicesNearCells(pools, wanted.requests, topology.sockets, None),
        )
        if found is None:
            return Lack("has NUMA cells and PCI devices, but not of the providers that placement offers", 0.1)
        return Lack(found.text, found.distance)

    def _fit(
        self, hosts: HostView, position: int, wanted: _Wanted, mappings: Mappings | None = None
    ) -> Fit | None:
        """Return the cells, CPUs, pages and devices of a host that a guest gets; None if it does not fit."""
        topology = self._topologies(hosts).topology(hosts, position)
        if topology is None:
            return None
        devices = None
        # Read for all guests: cells with devices are left to guests that want devices.
        pools = free_pools(hosts, position)
        if pools:
            devices = DevicesNearCells(pools, wanted.requests, topology.sockets, mappings)
        elif wanted.requests:
            return None
        return fit(
            topology,
            wanted.guest,
            limits_of(hosts.table.report(hosts.index.item(position))),
            pack=self._pack,
            network=wanted.network,
            devices=devices,
        )

    def _topologies(self, hosts: HostView) -> NumaTopologies:
        found = self._of_table.get(hosts.table)
        if found is None:
            found = self._of_table[hosts.table] = NumaTopologies()
        return found

    def _limits(self, host: OneHost, wanted: _Wanted) -> dict[str, object]:
        """Return the limits that the host has to keep to. Source: ``NUMATopologyLimits`` of Nova."""
        ratios = limits_of(host.table.report(host.index.item(0)))
        limits: dict[str, object] = {
            "cpu_allocation_ratio": ratios.cpu_ratio,
            "ram_allocation_ratio": ratios.ram_ratio,
        }
        if wanted.network is not None:
            physnets = sorted(wanted.network.physnets)
            limits["network_metadata"] = {"physnets": physnets, "tunneled": wanted.network.tunneled}
        return limits


def _trees_may_serve(request: SchedulingRequest) -> bool:
    """Return whether hosts may have their NUMA nodes as child providers, among which placement chooses."""
    return request.options.request_filters.numa_model == "both"


def _wanted(request: SchedulingRequest) -> _Wanted | None:
    """Return the demands of a request on reported topologies, None without any. Raises: `BadRequestSpec`."""
    spec = request.spec
    trees_alone = request.options.request_filters.numa_model == "trees"
    guest = None if trees_alone else request.demand.guest
    if guest is None:
        return None
    network = spec.network_metadata
    if network is not None and not (network.physnets or network.tunneled):
        network = None
    return _Wanted(guest, network, request.demand.devices)


PLUGIN = NUMATopologyFilter

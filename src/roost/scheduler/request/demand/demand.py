"""`Demand`: what one instance of a request needs, for the query, filters, claims and explanations."""

from functools import cached_property

import msgspec

from roost.fleet.hardware.guest_topology import GuestTopology
from roost.model.request import CandidateQuery
from roost.model.spec import PciRequest, RequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.demand.accelerators import with_accelerator_groups
from roost.scheduler.request.demand.groups import queries_of
from roost.scheduler.request.demand.guest_topology import wanted_topology
from roost.scheduler.request.demand.pci import pci_requests, with_pci_groups
from roost.scheduler.request.request_filters.spec_filters import SPEC_FILTERS

_KNOWN: dict[bytes, tuple[CandidateQuery, ...]] = {}
"""Cache of queries by flavor and the like: requests ask for the same few again and again."""
_MOST_KNOWN = 1_000
_encode = msgspec.msgpack.Encoder().encode


class Demand:
    """The demand of one request spec, of which costly parts are derived when they are first needed, and kept.

    ``devices``: all requests for PCI devices, the spec's own and those of its flavor's aliases. ``spec``: the
    spec with the request groups of these devices and of device profiles.
    """

    def __init__(self, spec: RequestSpec, options: SchedulerOptions) -> None:
        """Raises: `BadRequestSpec`, as each part may."""
        self._options = options
        self.devices: tuple[PciRequest, ...] = pci_requests(spec, options)
        self.spec = with_accelerator_groups(with_pci_groups(spec, self.devices, options), options)

    @cached_property
    def guest(self) -> GuestTopology | None:
        """The NUMA topology that flavor and image ask for; None if they ask for none."""
        return wanted_topology(self.spec)

    @cached_property
    def queries(self) -> tuple[CandidateQuery, ...]:
        """The queries for one instance, before the filters that look at the node table; see `queries_of`."""
        spec, options, image = self.spec, self._options, self.spec.image
        devices = (
            [each for each in self.devices if each.alias is not None] if options.pci.in_placement else []
        )
        key = _encode(
            (
                spec.flavor,
                spec.volume_backed,
                None if image is None else (image.disk_format, image.properties),
                spec.requested_resources,
                spec.required_traits,
                spec.forbidden_traits,
                spec.root_required,
                spec.root_forbidden,
                spec.same_subtree,
                spec.requested_networks,
                options.request_filters,
                options.workarounds,
                [(each.id, each.count, each.numa_policy) for each in devices],
            )
        )
        found = _KNOWN.get(key)
        if found is None:
            found = queries_of(
                spec,
                options.request_filters.numa_model,
                vcpu_for_pcpu=not options.workarounds.disable_fallback_pcpu_query,
                devices=devices,
            )
            for spec_filter in SPEC_FILTERS:
                found = tuple(spec_filter(query, spec, options) for query in found)
            if len(_KNOWN) == _MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[key] = found
        return found

"""Requests for PCI devices of the pools that compute nodes report."""

from typing import Literal

import msgspec

NumaPolicy = Literal["required", "preferred", "legacy", "socket"]
"""NUMA affinity that devices must have to the guest.

``required``: on one of the host's NUMA nodes that the guest uses. ``socket``: on the same socket as one of
these. ``legacy``: as ``required``, or a device whose NUMA node is unknown. ``preferred``: close ones first,
else any.
Source: ``numa_policy`` of Nova's option ``[pci] alias``.
"""


class PciRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request for ``count`` equal PCI devices, of a flavor's alias or of a Neutron port.

    - ``id``: names the request within the request spec, and its devices in the assignment.
    - ``specs``: alternatives. A device suits if it has all properties of one of them. Properties are
      ``vendor_id``, ``product_id``, ``dev_type`` (``type-PCI``, ``type-PF``, ``type-VF``, ``vdpa``) and tags
      such as ``physical_network``; None stands for a tag that the device does not have.
    - ``alias``: the name of the flavor's alias, None for a port.
    - ``numa_policy``: None means ``legacy``.
    - ``requester_id``: the id of the port, None for an alias.

    Source: ``InstancePCIRequest`` of Nova.
    """

    id: str
    count: int = 1
    specs: tuple[dict[str, str | None], ...]
    alias: str | None = None
    numa_policy: NumaPolicy | None = None
    requester_id: str | None = None

    @property
    def wanted(self) -> tuple[object, ...]:
        """The conditions on devices as a hashable value, equal for requests that differ only in their ids."""
        specs = tuple(tuple(sorted(each.items(), key=lambda item: item[0])) for each in self.specs)
        return (self.count, specs, self.numa_policy, self.alias is not None)

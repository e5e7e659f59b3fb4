"""Networks and ports in the body of a request for instances."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.fleet.hardware.pci_ports import ACCELERATORS, VnicType, request_of_port
from roost.model.spec import NumaPolicy, PciRequest, RequestedNetwork
from roost.model.vocabulary import MAX_INT, MAX_NAME

MOST_GROUPS = 20
"""Request groups of one port at most. More are refused."""

_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
_Suffix = Annotated[
    str, Meta(pattern="^[a-zA-Z0-9_-]{1,64}$", description="letters, digits, _ -, at most 64")
]
_PositiveAmount = Annotated[int, Meta(ge=1, le=MAX_INT)]


class WantedPortGroup(msgspec.Struct, forbid_unknown_fields=True):
    """Resources of a port that one provider must have, as Neutron's `request_groups` name them."""

    id: _Suffix
    resources: Annotated[dict[_Name, _PositiveAmount], Meta(min_length=1)]
    required: tuple[_Name, ...] = ()


class WantedPortResources(msgspec.Struct, forbid_unknown_fields=True):
    """The `resource_request` of a port in the form of Neutron's extension port-resource-request-groups."""

    request_groups: Annotated[tuple[WantedPortGroup, ...], Meta(min_length=1, max_length=MOST_GROUPS)]
    same_subtree: tuple[_Suffix, ...] = ()

    def __post_init__(self) -> None:
        unknown = set(self.same_subtree) - {group.id for group in self.request_groups}
        if unknown:
            raise ValueError(f"same_subtree names {min(unknown)}, which is no id of request_groups")


_OF_PORTS = ("remote_managed", "resource_request", "trusted", "pci_numa_affinity_policy", "device_profile")


class WantedNetwork(msgspec.Struct, forbid_unknown_fields=True):
    """A network or port of the instances, with the facts of Neutron that a scheduler must respect.

    `segments` are the segments that it can be on. `remote_managed`: a SmartNIC serves the port. A port with a
    `vnic_type` such as `direct` needs a PCI device, of the `physical_network` of its network (null: it is
    tunneled), `trusted` as its binding profile says, and close to the guest as its
    `pci_numa_affinity_policy` says. A port with an accelerator has a `device_profile`.
    """

    network_id: _Name | None = None
    port_id: _Name | None = None
    segments: tuple[_Name, ...] = ()
    remote_managed: bool = False
    resource_request: WantedPortResources | None = None
    vnic_type: VnicType = "normal"
    physical_network: _Name | None = None
    trusted: bool | None = None
    pci_numa_affinity_policy: NumaPolicy | None = None
    device_profile: _Name | None = None

    def __post_init__(self) -> None:
        if self.network_id is None and self.port_id is None:
            raise ValueError("a network has a network_id, a port_id or both")
        of_port = [each for each in _OF_PORTS if getattr(self, each) not in (None, False)]
        if self.port_id is None and (of_port or self.vnic_type != "normal"):
            raise ValueError(f"network {self.network_id}: only a port has {(of_port or ['a vnic_type'])[0]}")
        if (self.vnic_type in ACCELERATORS) != (self.device_profile is not None):
            raise ValueError(f"port {self.port_id}: vnic_type accelerator-… and device_profile go together")

    @property
    def requested(self) -> RequestedNetwork:
        """The network in a request spec."""
        return RequestedNetwork(
            network_id=self.network_id,
            port_id=self.port_id,
            segments=self.segments,
            remote_managed=self.is_remote_managed,
            device_profile=self.device_profile,
        )

    @property
    def is_remote_managed(self) -> bool:
        """True if a SmartNIC serves the port."""
        return self.remote_managed or self.vnic_type == "remote-managed"

    @property
    def pci_request(self) -> PciRequest | None:
        """The PCI device that the port needs."""
        if self.port_id is None:
            return None
        return request_of_port(
            self.port_id,
            self.vnic_type,
            physical_network=self.physical_network,
            trusted=self.trusted,
            numa_policy=self.pci_numa_affinity_policy,
        )

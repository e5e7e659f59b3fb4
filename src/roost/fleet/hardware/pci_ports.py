"""The PCI devices that Neutron ports need.

Source: ``create_resource_requests`` of ``nova/network/neutron.py``, and
``update_pci_request_spec_with_allocated_interface_name`` of ``nova/compute/utils.py``.
"""

from typing import Final, Literal

import msgspec

from roost.model.spec import NumaPolicy, PciRequest

VnicType = Literal[
    "normal",
    "direct",
    "direct-physical",
    "macvtap",
    "virtio-forwarder",
    "vdpa",
    "remote-managed",
    "baremetal",
    "smart-nic",
    "accelerator-direct",
    "accelerator-direct-physical",
]
"""Types of a port's virtual NIC. Source: ``binding:vnic_type`` of Neutron's ports."""

ON_DEVICES: Final = frozenset(
    ("direct", "direct-physical", "macvtap", "virtio-forwarder", "vdpa", "remote-managed")
)
"""The types that need a PCI device of the host."""

ACCELERATORS: Final = frozenset(("accelerator-direct", "accelerator-direct-physical"))
"""The types that need an accelerator, which the port's device profile describes."""

_DEVICE_TYPES: Final = {"direct-physical": "type-PF", "vdpa": "vdpa"}


def request_of_port(
    port_id: str,
    vnic_type: VnicType,
    *,
    physical_network: str | None = None,
    trusted: bool | None = None,
    numa_policy: NumaPolicy | None = None,
) -> PciRequest | None:
    """Return the request of a port, None if the port needs no PCI device. Its id is that of the port.

    ``physical_network``: of the port's network, None for a tunneled one. ``trusted``: the value in the port's
    binding profile, None if it has none. ``numa_policy``: of the port itself.
    """
    if vnic_type not in ON_DEVICES:
        return None
    spec: dict[str, str | None] = {
        "physical_network": physical_network,
        "remote_managed": str(vnic_type == "remote-managed"),
    }
    if vnic_type in _DEVICE_TYPES:
        spec["dev_type"] = _DEVICE_TYPES[vnic_type]
    if trusted is not None:
        spec["trusted"] = str(trusted)
    return PciRequest(id=port_id, specs=(spec,), numa_policy=numa_policy, requester_id=port_id)


def on_interface(request: PciRequest, provider_name: str) -> PciRequest:
    """Return the request of a port, restricted to devices of one card.

    ``provider_name``: of the provider that serves the port's bandwidth. Neutron names it
    ``HOST:AGENT:INTERFACE``, by the interface of the card's physical function.
    """
    interface = provider_name.rpartition(":")[2]
    specs = tuple({**spec, "parent_ifname": interface} for spec in request.specs)
    return msgspec.structs.replace(request, specs=specs)

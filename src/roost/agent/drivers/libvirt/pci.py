"""The PCI devices for guests, as Nova's device pools."""

import fnmatch
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from roost.agent.drivers.libvirt.node_devices import PciDevice
from roost.agent.errors import UnusableOptions
from roost.fleet.hardware.pci_pools import TYPE_PF, TYPE_VF

_SELECTS: Final = ("vendor_id", "product_id", "address")
_ANY: Final = "*"


class DeviceSpec(msgspec.Struct, frozen=True):
    """Selects devices for guests by ids and address; the address may contain ``*``.

    ``tags``: properties that the pools of these devices get, such as ``physical_network``. An address is that
    of the device or of its physical function.
    Source: ``[pci] device_spec`` of Nova.
    """

    vendor_id: str = _ANY
    product_id: str = _ANY
    address: str = _ANY
    tags: dict[str, str] = {}

    def matches(self, device: PciDevice) -> bool:
        """Return whether the specification selects a device."""
        return (
            self.vendor_id in (_ANY, device.vendor_id)
            and self.product_id in (_ANY, device.product_id)
            and any(
                fnmatch.fnmatchcase(each, self.address)
                for each in (device.address, device.parent)
                if each is not None
            )
        )


def read_device_spec(text: str) -> DeviceSpec:
    """Read a specification from a JSON object in Nova's form. Raises `UnusableOptions`."""
    try:
        given = msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise UnusableOptions(f"device_spec {text!r} is no JSON object of texts: {error}") from error
    selects = {name: given[name].strip().lower() for name in _SELECTS if name in given}
    if not selects:
        raise UnusableOptions(f"device_spec {text!r} has none of {', '.join(_SELECTS)}")
    return DeviceSpec(**selects, tags={name: each for name, each in given.items() if name not in _SELECTS})


def assignable(
    devices: Iterable[PciDevice], specs: Collection[DeviceSpec]
) -> list[tuple[PciDevice, Mapping[str, str]]]:
    """Return the devices for guests, each with the tags of the first specification that matches it.

    A physical function is left out if virtual functions of it match: guests get these.
    """
    found: list[tuple[PciDevice, Mapping[str, str]]] = []
    for device in devices:
        spec = next((each for each in specs if each.matches(device)), None)
        if spec is not None:
            found.append((device, spec.tags))
    parents = {device.parent for device, _ in found if device.parent is not None}
    return [(device, tags) for device, tags in found if device.address not in parents]


def pci_pools(
    devices: Iterable[PciDevice], specs: Collection[DeviceSpec], used_by_others: Collection[str] = ()
) -> tuple[dict[str, object], ...]:
    """Return the pools of a host without our guests: equal devices, with their addresses.

    ``used_by_others``: addresses of devices of foreign guests.
    """
    pools: dict[tuple[object, ...], dict[str, object]] = {}
    for device, tags in assignable(devices, specs):
        if device.address in used_by_others:
            continue
        described: dict[str, object] = {
            "vendor_id": device.vendor_id,
            "product_id": device.product_id,
            "numa_node": device.numa_node,
            "dev_type": device.dev_type,
            **tags,
        }
        if device.dev_type == TYPE_VF:
            described["address"] = device.parent
        elif device.dev_type == TYPE_PF:
            described["address"] = device.address
        key = tuple(sorted((name, str(value)) for name, value in described.items()))
        pool = pools.setdefault(key, {**described, "count": 0, "devices": []})
        addresses = pool["devices"]
        assert isinstance(addresses, list)
        addresses.append(device.address)
        pool["count"] = len(addresses)
    return tuple(pools.values())

"""`PciPool`: equal PCI devices of one node that are free, as the node reports them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

TYPE_PCI: Final = "type-PCI"
TYPE_PF: Final = "type-PF"
TYPE_VF: Final = "type-VF"
VDPA: Final = "vdpa"

_PF: Final = TYPE_PF.lower()
_PARTS: Final = (TYPE_VF.lower(), VDPA)
_IDS: Final = ("vendor_id", "product_id")
_TRUE: Final = frozenset(("1", "t", "true", "on", "y", "yes"))
_NOT_PROPERTIES: Final = frozenset(("count", "devices", "resource_class", "traits", "rp_uuid", "rp_uuids"))
"""Members of a reported pool that no request is matched with. Source: ``ignored_pool_tags`` of
``nova/pci/stats.py``."""


def is_true(text: str | None) -> bool:
    """Return whether a tag is true. Source: ``bool_from_string`` of oslo.utils."""
    return text is not None and text.strip().lower() in _TRUE


class PciPool(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` equal free devices.

    - ``key``: names the pool on its node. It stays the same while devices are taken and given back.
    - ``properties``: all properties that requests are matched with, ``vendor_id`` and ``product_id``
      included; by name, in order of the names, values in lower case. ``numa_node``: of the host, None if it
      is not known.
    - ``address``: the address of a physical function or PCI device; for virtual functions and vDPA devices
      that of their physical function; None if it is not reported.
    - ``devices``: the addresses of the free devices, empty if the node does not report them.
    - ``provider``: the uuid of the devices' resource provider in placement, None if there is none.
    - ``tags``: the number of members that the node reports of the pool; pools with fewer are used first.
    - ``dev_type``: the type of the devices in lower case, None if it is not reported. ``is_physical``: the
      devices are physical functions, of which virtual ones can be made. ``is_virtual``: the devices are parts
      of a physical function. ``remote_managed``: a SmartNIC manages the devices.
    """

    key: str
    count: int
    properties: dict[str, str | None]
    numa_node: int | None = None
    address: str | None = None
    devices: tuple[str, ...] = ()
    provider: str | None = None
    tags: int = 0
    dev_type: str | None = None
    remote_managed: bool = False
    is_physical: bool = False
    is_virtual: bool = False

    def addresses(self, first: int, count: int) -> tuple[str, ...]:
        """Return the addresses of ``count`` devices of the pool from number ``first`` on, if known."""
        if self.devices:
            return self.devices[first : first + count]
        if self.address is not None and self.count == count == 1 and not self.is_virtual:
            return (self.address,)
        return ()


def pools_of(reported: Iterable[Mapping[str, Any]]) -> tuple[PciPool, ...]:
    """Return the pools of a node, in the order in which they are used.

    Each is a ``PciDevicePool`` of Nova as it is serialised, or a plain object with the same members, where
    tags may stand beside the others. Roost's agents add ``devices``: the addresses of the free devices. A
    pool without a valid count has no devices.

    Source: ``PciDeviceStats`` of ``nova/pci/stats.py``, for the order as well.
    """
    pools: dict[str, PciPool] = {}
    for each in reported:
        if (pool := _pool(each)) is not None:
            same = pools.get(pool.key)
            pools[pool.key] = pool if same is None else _together(same, pool)
    return tuple(sorted(pools.values(), key=lambda pool: pool.tags))


def free_devices(reported: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of free devices in all pools of a node."""
    return sum(_count(_members(each)) for each in reported)


def _members(reported: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the members of a pool and its tags, without the envelope of a serialised object."""
    data = reported.get("nova_object.data", reported)
    tags = data.get("tags")
    if not isinstance(tags, Mapping):
        return data  # type: ignore[no-any-return]
    tags = tags.get("nova_object.data", tags)
    return {name: value for name, value in data.items() if name != "tags"} | dict(tags)


def _count(members: Mapping[str, Any]) -> int:
    count = members.get("count")
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0


def _pool(reported: Mapping[str, Any]) -> PciPool | None:
    members = _members(reported)
    count = _count(members)
    if not count:
        return None
    properties: dict[str, str | None] = {}
    named: list[str] = []
    for name, value in sorted(members.items()):
        if name in _NOT_PROPERTIES:
            continue
        text = value if value is None else str(value)
        properties[name] = text if text is None else text.lower()
        if text is not None and name not in _IDS:
            named.append(f" {name}={text}")
    provider, address = _text(members.get("rp_uuid")), _text(members.get("address"))
    if provider is not None:
        named.append(f" rp_uuid={provider}")
    numa_node = members.get("numa_node")
    devices = tuple(each for each in members.get("devices") or () if isinstance(each, str))
    dev_type = properties.get("dev_type")
    return PciPool(
        key=f"{members.get('vendor_id')}:{members.get('product_id')}{''.join(named)}",
        count=len(devices) or count,
        properties=properties,
        numa_node=numa_node if isinstance(numa_node, int) else None,
        address=address,
        devices=devices,
        provider=provider,
        tags=len(members) - ("devices" in members),
        dev_type=dev_type,
        remote_managed=is_true(properties.get("remote_managed")),
        is_physical=dev_type == _PF,
        is_virtual=dev_type in _PARTS,
    )


def _together(one: PciPool, other: PciPool) -> PciPool:
    return msgspec.structs.replace(one, count=one.count + other.count, devices=one.devices + other.devices)


def _text(value: object) -> str | None:
    return None if value is None else str(value)

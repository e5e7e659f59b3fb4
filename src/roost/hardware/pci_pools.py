"""`PciPool`: equal PCI devices of one node that are free, as the node reports them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

TYPE_PCI: Final = "type-PCI"
TYPE_PF: Final = "type-PF"
TYPE_VF: Final = "type-VF"
VDPA: Final = "vdpa"

_TRUE: Final = frozenset(("1", "t", "true", "on", "y", "yes"))
_NOT_PROPERTIES: Final = frozenset(("count", "devices", "resource_class", "traits", "rp_uuid", "rp_uuids"))
"""Members of a reported pool that no request is matched with. Source: ``ignored_pool_tags`` of
``nova/pci/stats.py``."""


def is_true(text: str | None) -> bool:
    """Whether a tag says yes. Source: ``bool_from_string`` of oslo.utils."""
    return text is not None and text.strip().lower() in _TRUE


class PciPool(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` equal free devices.

    - ``key``: names the pool on its node. It stays the same while devices are taken and given back.
    - ``properties``: all that requests are matched with, ``vendor_id`` and ``product_id`` included; values in
      lower case. ``numa_node``: of the host, None if it is not known.
    - ``address``: of a physical function or PCI device its own, of virtual functions and vDPA devices that of
      their physical function; None if it is not reported.
    - ``devices``: the addresses of the free devices, empty if the node does not report them.
    - ``provider``: the uuid of the devices' resource provider in placement, None if there is none.
    - ``tags``: the number of members that the node reports of the pool; pools with fewer are used first.
    """

    key: str
    count: int
    properties: dict[str, str | None]
    numa_node: int | None = None
    address: str | None = None
    devices: tuple[str, ...] = ()
    provider: str | None = None
    tags: int = 0

    @property
    def dev_type(self) -> str | None:
        """The type of the devices in lower case, None if it is not reported."""
        return self.properties.get("dev_type")

    @property
    def remote_managed(self) -> bool:
        """Whether a SmartNIC manages the devices."""
        return is_true(self.properties.get("remote_managed"))

    @property
    def is_physical(self) -> bool:
        """Whether the devices are physical functions, of which virtual ones can be made."""
        return self.dev_type == TYPE_PF.lower()

    @property
    def is_virtual(self) -> bool:
        """Whether the devices are parts of a physical function."""
        return self.dev_type in (TYPE_VF.lower(), VDPA)

    def addresses(self, first: int, count: int) -> tuple[str, ...]:
        """The addresses of ``count`` devices of the pool from device ``first`` on, empty if they cannot be
        told."""
        if self.devices:
            return self.devices[first : first + count]
        if self.address is not None and self.count == count == 1 and not self.is_virtual:
            return (self.address,)
        return ()


def pools_of(reported: Iterable[Mapping[str, Any]]) -> tuple[PciPool, ...]:
    """The pools of a node, in the order in which they are used.

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
    """The number of free devices in all pools of a node."""
    return sum(_count(_members(each)) for each in reported)


def _members(reported: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members of a pool, without the envelope of a serialised object, and with its tags beside them."""
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
    written = {name: _text(value) for name, value in members.items() if name not in _NOT_PROPERTIES}
    numa_node = members.get("numa_node")
    devices = members.get("devices") or ()
    addresses = tuple(each for each in devices if isinstance(each, str))
    named = {name: value for name, value in written.items() if name not in ("vendor_id", "product_id")}
    provider = _text(members.get("rp_uuid"))
    key = f"{written.get('vendor_id')}:{written.get('product_id')}" + "".join(
        f" {name}={value}"
        for name, value in sorted((named | {"rp_uuid": provider}).items())
        if value is not None
    )
    return PciPool(
        key=key,
        count=len(addresses) or count,
        properties={name: None if value is None else value.lower() for name, value in written.items()},
        numa_node=numa_node if isinstance(numa_node, int) else None,
        address=written.get("address"),
        devices=addresses,
        provider=provider,
        tags=len(members) - ("devices" in members),
    )


def _together(one: PciPool, other: PciPool) -> PciPool:
    return msgspec.structs.replace(one, count=one.count + other.count, devices=one.devices + other.devices)


def _text(value: object) -> str | None:
    return None if value is None else str(value)

"""Networks, subnets with their pools of addresses, and ports, as Neutron's API 2.0 has them."""

import uuid as uuids
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from itertools import chain
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType
from sqlalchemy.engine import Connection

from roost.model.allocation import Resources
from roost.server.neighbours.errors import Changed, InUse, Wrong
from roost.server.neighbours.store import Resource, ResourceKind, add, change, every, find, remove, take_unit

_Text = Annotated[str, Meta(max_length=255)]
_Uuid = Annotated[str, Meta(pattern="^[0-9a-f-]{36}$", description="a uuid in small letters, with dashes")]

MOST_ADDRESSES: Final = 2**16
"""Most addresses of a subnet that ports can get: the search for a free one starts at the first."""


class Network(msgspec.Struct, forbid_unknown_fields=True):
    """A network."""

    id: str = ""
    name: _Text = ""
    project_id: _Text = ""
    admin_state_up: bool = True


class Pool(msgspec.Struct, forbid_unknown_fields=True):
    """A range of addresses, from the first to the last one."""

    start: str
    end: str


class Subnet(msgspec.Struct, forbid_unknown_fields=True):
    """A subnet. Its ports get addresses of its pools.

    Without pools they get any address but those of the network, the gateway and the broadcast.
    """

    network_id: _Uuid
    cidr: str
    id: str = ""
    name: _Text = ""
    project_id: _Text = ""
    ip_version: int = 4
    gateway_ip: str | UnsetType | None = UNSET
    allocation_pools: list[Pool] = []

    def __post_init__(self) -> None:
        net = ip_network(self.cidr)
        self.ip_version = net.version
        if self.gateway_ip is UNSET:
            self.gateway_ip = str(net.network_address + 1)
        for pool in self.allocation_pools:
            first, last = ip_address(pool.start), ip_address(pool.end)
            if first not in net or last not in net or int(first) > int(last):
                raise ValueError(f"allocation pool {pool.start} to {pool.end} is not within {self.cidr}")
        if sum(len(numbers) for numbers in _ranges(self, net)) > MOST_ADDRESSES:
            raise ValueError(f"the pools of {self.cidr} have more than {MOST_ADDRESSES} addresses")


class PortRequestGroup(msgspec.Struct, forbid_unknown_fields=True):
    """Resources that one provider must have for a port."""

    id: _Uuid
    required: list[str] = []
    resources: Resources = {}


class ResourceRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The resources that a port needs in placement. In Neutron they follow from a QoS policy."""

    request_groups: list[PortRequestGroup]
    same_subtree: list[_Uuid] = []


class FixedIp(msgspec.Struct, forbid_unknown_fields=True):
    """An address of a port."""

    subnet_id: str
    ip_address: str


class Port(
    msgspec.Struct,
    forbid_unknown_fields=True,
    rename={
        "host": "binding:host_id",
        "profile": "binding:profile",
        "vnic_type": "binding:vnic_type",
        "vif_type": "binding:vif_type",
    },
):
    """A port. It gets one IPv4 and one IPv6 address, if its network has such subnets, as in Neutron."""

    network_id: _Uuid
    id: str = ""
    name: _Text = ""
    project_id: _Text = ""
    admin_state_up: bool = True
    device_id: _Text = ""
    device_owner: _Text = ""
    host: _Text = ""
    profile: dict[str, Any] = {}
    vnic_type: _Text = "normal"
    vif_type: _Text = "unbound"
    mac_address: _Text = ""
    fixed_ips: list[FixedIp] = []
    resource_request: ResourceRequest | None = None


class PortChange(
    msgspec.Struct,
    forbid_unknown_fields=True,
    rename={"host": "binding:host_id", "profile": "binding:profile"},
):
    """A change of a port: the fields that may change."""

    name: _Text | UnsetType = UNSET
    admin_state_up: bool | UnsetType = UNSET
    device_id: _Text | UnsetType = UNSET
    device_owner: _Text | UnsetType = UNSET
    host: _Text | UnsetType = UNSET
    profile: dict[str, Any] | UnsetType = UNSET


NETWORK: Final = ResourceKind("network", Network, "NetworkNotFound")
SUBNET: Final = ResourceKind("subnet", Subnet, "SubnetNotFound")
PORT: Final = ResourceKind("port", Port, "PortNotFound")


def add_network(connection: Connection, network: Network) -> Resource:
    """Add a network."""
    network = msgspec.structs.replace(network, id=str(uuids.uuid4()))
    return add(connection, NETWORK, network.id, network, None, "")


def remove_network(connection: Connection, uuid: str) -> None:
    """Remove a network with its subnets. Raises `InUse` if it has ports."""
    find(connection, NETWORK, uuid, locked=True)
    if every(connection, PORT, parent=uuid):
        raise InUse(f"network {uuid} has ports", "NetworkInUse")
    for subnet in every(connection, SUBNET, parent=uuid):
        remove(connection, SUBNET, subnet.value.id)
    remove(connection, NETWORK, uuid)


def add_subnet(connection: Connection, subnet: Subnet) -> Resource:
    """Add a subnet. Raises `Missing`, and `Wrong` if it overlaps another one of its network."""
    find(connection, NETWORK, subnet.network_id, locked=True)
    net = ip_network(subnet.cidr)
    for other in every(connection, SUBNET, parent=subnet.network_id):
        known = ip_network(other.value.cidr)
        if known.version == net.version and known.overlaps(net):
            raise Wrong(f"subnet {subnet.cidr} overlaps {other.value.cidr} of the same network")
    subnet = msgspec.structs.replace(subnet, id=str(uuids.uuid4()))
    return add(connection, SUBNET, subnet.id, subnet, subnet.network_id, "")


def remove_subnet(connection: Connection, uuid: str) -> None:
    """Remove a subnet. Raises `InUse` if a port has one of its addresses."""
    subnet = find(connection, SUBNET, uuid).value
    find(connection, NETWORK, subnet.network_id, locked=True)
    for port in every(connection, PORT, parent=subnet.network_id):
        if any(fixed.subnet_id == uuid for fixed in port.value.fixed_ips):
            raise InUse(f"port {port.value.id} has an address of subnet {uuid}", "SubnetInUse")
    remove(connection, SUBNET, uuid)


def add_port(connection: Connection, port: Port) -> Resource:
    """Add a port with its addresses. Raises `Missing`, and `InUse` if a subnet has no address left."""
    # The lock keeps a subnet from being removed while a port takes an address of it.
    find(connection, NETWORK, port.network_id, locked=True)
    uuid = str(uuids.uuid4())
    subnets = [each.value for each in every(connection, SUBNET, parent=port.network_id)]
    fixed = []
    for version in sorted({subnet.ip_version for subnet in subnets}):
        some = [subnet for subnet in subnets if subnet.ip_version == version]
        found = (
            FixedIp(subnet.id, address)
            for subnet in some
            if (address := take_unit(connection, subnet.id, addresses(subnet), uuid)) is not None
        )
        one = next(found, None)
        if one is None:
            text = f"No more IP addresses available on network {port.network_id}."
            raise InUse(text, "IpAddressGenerationFailure")
        fixed.append(one)
    mac = "02:" + ":".join(uuid[start : start + 2] for start in range(0, 8, 2)) + f":{uuid[9:11]}"
    port = msgspec.structs.replace(port, id=uuid, fixed_ips=fixed, mac_address=mac, vif_type=_vif(port.host))
    return add(connection, PORT, uuid, port, port.network_id, port.device_id)


def change_port(connection: Connection, uuid: str, wanted: PortChange, seen: int | None) -> Resource:
    """Change a port. ``seen``: the revision that it must have. Raises `Missing`, `Changed`."""
    port = find(connection, PORT, uuid, locked=True)
    _check_seen(port, seen)
    changes = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not UNSET}
    changed = msgspec.structs.replace(port.value, **changes)
    changed = msgspec.structs.replace(changed, vif_type=_vif(changed.host))
    return change(connection, PORT, uuid, changed, port.revision, changed.device_id)


def remove_port(connection: Connection, uuid: str, seen: int | None) -> None:
    """Remove a port, and free its addresses. Raises `Missing`, `Changed`."""
    _check_seen(find(connection, PORT, uuid, locked=True), seen)
    remove(connection, PORT, uuid)


def addresses(subnet: Subnet) -> Iterator[str]:
    """Yield the addresses that ports of a subnet may have, in ascending order."""
    net = ip_network(subnet.cidr)
    gateway = subnet.gateway_ip
    without = int(ip_address(gateway)) if isinstance(gateway, str) else None
    for number in chain.from_iterable(_ranges(subnet, net)):
        if number != without:
            yield str(net.network_address.__class__(number))


def _ranges(subnet: Subnet, net: IPv4Network | IPv6Network) -> list[range]:
    """Return the pools of a subnet as ranges of numbers.

    Without pools it is one range of all addresses but that of the network and the broadcast.
    """
    if subnet.allocation_pools:
        pools = [(ip_address(each.start), ip_address(each.end)) for each in subnet.allocation_pools]
        return [_within(int(first), int(last)) for first, last in pools]
    first, last = int(net.network_address), int(net.broadcast_address)
    is_small = net.prefixlen >= net.max_prefixlen - 1
    return [_within(first, last) if is_small else _within(first + 1, last - 1)]


def _within(first: int, last: int) -> range:
    # Python has no len() of a very long range; numbers beyond the limit are not used.
    return range(first, min(last, first + MOST_ADDRESSES) + 1)


def _vif(host: str) -> str:
    return "other" if host else "unbound"


def _check_seen(port: Resource, seen: int | None) -> None:
    if seen is not None and seen != port.revision:
        raise Changed(f"port {port.value.id} has revision number {port.revision}, not {seen}")

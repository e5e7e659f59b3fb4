"""Ports of instances: bound to the host, with the providers that serve them, and addresses from a pool.

A port of the user is bound and unbound; a port for a requested network is created and deleted. An attempt
marks a port with its number, so that a late attempt on one host takes nothing from a later one on another. A
guest that is started again where it was takes the ports back from the attempts after it, and marks them with
the number of the last of these, which may be late as well.
Writes name the port's revision, so that Neutron refuses them if others have changed the port since it was
read.

Source: Neutron's API v2.0 (port bindings, port-resource-request, revision-if-match), and
``nova/network/neutron.py``.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import msgspec

from roost.agent.drivers import Attached, AttachedPort
from roost.agent.errors import BuildFailed
from roost.agent.protocol.types import PortsReleased
from roost.model.instance import Instance
from roost.model.spec import RequestedNetwork
from roost.web.auth.json_service import JsonService, ServiceAway, ServiceRefused

NO_ADDRESS = "NoMoreAddresses"
"""The code of builds that got no address. Another host may have one: it may be on another segment, and an
instance that ends meanwhile gives its own back."""
NO_PORT = "NoSuchPort"
"""The code of builds whose port or network does not exist."""
IN_USE = "PortInUse"
"""The code of builds whose port belongs to another instance."""
QUOTA = "OverQuota"
"""The code of builds for which the project may have no more ports."""
NOT_BOUND = "PortNotBound"
"""The code of builds whose port could not be bound to the host."""
OUTRANKED = "Outranked"
"""The code of builds whose port is bound by a later attempt."""

GIVEN: Final = "compute:roost"
"""``device_owner`` of a port that the user created."""
MADE: Final = "compute:roost-made"
"""``device_owner`` of a port that the agent created, and deletes."""

_PATH: Final = "/v2.0/ports"
_ATTEMPT: Final = "roost_attempt"
_ALLOCATION: Final = "allocation"
_ADDRESS: Final = "pci_slot"
_OURS: Final = (_ATTEMPT, _ALLOCATION, _ADDRESS)
_NO_ADDRESSES: Final = ("IpAddressGenerationFailure", "ExternalIpAddressExhausted")
_TRIES: Final = 10
"""Times that a port is read and changed while others change it."""


def mark_of(mark: int, at: str, host: str, attempt: int, over: int | None) -> int | None:
    """Return the mark of a port that an attempt binds to its host; None: it is a later attempt's.

    ``mark`` and ``at``: the mark of the port, and the host that it is bound to. ``over``: see `attach` of
    `roost.agent.neighbours.Neighbour`.
    """
    last = attempt if over is None else max(attempt, over)
    if mark < last or (mark == last and (over is not None or at in ("", host))):
        return last
    return mark if over is not None and at == host else None


def is_released(ports: PortsReleased, at: str, host: str) -> bool:
    """Return whether a host releases a port that is bound to the host ``at``."""
    return ports in ("all", "every") or (ports in ("host", "unbound") and at == host)


class _Group(msgspec.Struct, frozen=True):
    id: str


class _Resources(msgspec.Struct, frozen=True):
    """``request_groups``: None in the older form of Neutron, which is for one group."""

    request_groups: list[_Group] | None = None


class _Port(msgspec.Struct, frozen=True, rename={"host": "binding:host_id", "profile": "binding:profile"}):
    id: str
    name: str = ""
    network_id: str = ""
    device_id: str = ""
    device_owner: str = ""
    host: str = ""
    profile: dict[str, Any] = {}
    vif_type: str = msgspec.field(default="", name="binding:vif_type")
    vif_details: dict[str, Any] | None = msgspec.field(default=None, name="binding:vif_details")
    mac_address: str = ""
    resource_request: _Resources | None = None
    revision_number: int | None = None


class _One(msgspec.Struct, frozen=True):
    port: _Port


class _Many(msgspec.Struct, frozen=True):
    ports: list[_Port]


class Ports:
    """The ports of one host's instances."""

    traits: tuple[str, ...] = ()
    follows = True

    def __init__(self, api: JsonService, host: str) -> None:
        self._api = api
        self._host = host

    def serves(self, instance: Instance) -> bool:
        return instance.spec is not None and bool(instance.spec.requested_networks)

    async def attach(self, instance: Instance, over: int | None = None) -> Attached:
        if instance.spec is None or not instance.spec.requested_networks:
            return Attached()
        bound: list[_Port] = []
        try:
            made = {port.name: port for port in await self._of(instance.uuid) if port.device_owner == MADE}
            for number, wanted in enumerate(instance.spec.requested_networks):
                if wanted.port_id is not None:
                    bound.append(await self._bind(wanted.port_id, instance, GIVEN, over))
                    continue
                name = f"roost-{instance.uuid}-{number}"
                if (there := made.get(name)) is not None:
                    bound.append(await self._bind(there.id, instance, MADE, over))
                else:
                    bound.append(await self._make(name, wanted, instance))
        except ServiceRefused as error:
            raise _failure(error) from error
        return Attached(ports=tuple(_attached(port) for port in bound))

    async def detach(self, instance: str, ports: PortsReleased = "host") -> None:
        if ports == "none":
            return
        wanted = {} if ports in ("all", "every") else {"binding:host_id": self._host}
        for port in await self._of(instance, **wanted):
            await self._release(port, instance, ports)

    async def _make(self, name: str, wanted: RequestedNetwork, instance: Instance) -> _Port:
        body = {
            "name": name,
            "network_id": wanted.network_id,
            "project_id": instance.project_id,
            "admin_state_up": True,
            **self._binding(instance, MADE, {}, instance.attempt),
        }
        return self._checked(_read(await self._api.ask("POST", _PATH, {"port": body}), _One).port)

    async def _bind(self, uuid: str, instance: Instance, owner: str, over: int | None) -> _Port:
        for _ in range(_TRIES):
            port = _read(await self._api.ask("GET", f"{_PATH}/{quote(uuid, safe='')}"), _One).port
            if port.device_id not in ("", instance.uuid):
                raise BuildFailed(f"port {uuid} is in use by {port.device_id}", IN_USE, retryable=False)
            mark = mark_of(port.profile.get(_ATTEMPT, 0), port.host, self._host, instance.attempt, over)
            if mark is None:
                raise BuildFailed(f"a later attempt has port {uuid} on {port.host}", OUTRANKED)
            kept = {key: value for key, value in port.profile.items() if key not in _OURS}
            profile = kept | _allocation(port, instance) | _device(port, instance)
            binding = self._binding(instance, owner, profile, mark)
            if over is not None and binding == _bound(port):
                return self._checked(port)
            changed = await self._change(port, binding)
            if changed is not None:
                return self._checked(changed)
        raise BuildFailed(f"port {uuid} is being changed all the time", NOT_BOUND)

    def _binding(
        self, instance: Instance, owner: str, profile: Mapping[str, Any], mark: int
    ) -> dict[str, Any]:
        return {
            "device_id": instance.uuid,
            "device_owner": owner,
            "binding:host_id": self._host,
            "binding:profile": {**profile, _ATTEMPT: mark},
        }

    def _checked(self, port: _Port) -> _Port:
        """Return the port. Raises `BuildFailed` if the network cannot serve it on this host."""
        if port.vif_type == "binding_failed":
            raise BuildFailed(f"port {port.id} cannot be bound on {self._host}", NOT_BOUND)
        return port

    async def _change(self, port: _Port, changes: Mapping[str, Any]) -> _Port | None:
        """Return the changed port; None if others have changed it since it was read."""
        try:
            answer = await self._api.ask(
                "PUT", f"{_PATH}/{port.id}", {"port": changes}, revision=port.revision_number
            )
        except ServiceRefused as error:
            if error.status == HTTPStatus.PRECONDITION_FAILED:
                return None
            raise
        changed: _Port = _read(answer, _One).port
        return changed

    async def _release(self, port: _Port, instance: str, ports: PortsReleased) -> None:
        """Delete or unbind a port, unless it is another instance's by then, or not to be released."""
        for _ in range(_TRIES):
            if port.device_id != instance or not is_released(ports, port.host, self._host):
                return
            try:
                if ports == "unbound":
                    # The mark stays: a build of before that comes late must not bind it.
                    marked = {key: port.profile[key] for key in (_ATTEMPT,) if key in port.profile}
                    kept = {key: value for key, value in port.profile.items() if key not in _OURS}
                    freed: dict[str, Any] = {"binding:host_id": "", "binding:profile": kept | marked}
                    if await self._change(port, freed) is not None:
                        return
                    port = _read(await self._api.ask("GET", f"{_PATH}/{port.id}"), _One).port
                    continue
                if port.device_owner == MADE:
                    await self._api.ask("DELETE", f"{_PATH}/{port.id}", revision=port.revision_number)
                    return
                kept = {key: value for key, value in port.profile.items() if key not in _OURS}
                freed = {"device_id": "", "device_owner": "", "binding:host_id": "", "binding:profile": kept}
                if await self._change(port, freed) is not None:
                    return
                port = _read(await self._api.ask("GET", f"{_PATH}/{port.id}"), _One).port
            except ServiceRefused as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    return
                if error.status != HTTPStatus.PRECONDITION_FAILED:
                    raise
                port = _read(await self._api.ask("GET", f"{_PATH}/{port.id}"), _One).port
        raise ServiceAway(f"port {port.id} is being changed all the time")

    async def _of(self, instance: str, **query: str) -> list[_Port]:
        answer = await self._api.ask("GET", _PATH, query={"device_id": instance, **query})
        return [port for port in _read(answer, _Many).ports if port.device_id == instance]


def _bound(port: _Port) -> dict[str, Any]:
    """Return the binding of a port as it is."""
    return {
        "device_id": port.device_id,
        "device_owner": port.device_owner,
        "binding:host_id": port.host,
        "binding:profile": port.profile,
    }


def _allocation(port: _Port, instance: Instance) -> dict[str, Any]:
    """Return the provider of each request group of a port, for the binding profile."""
    if port.resource_request is None:
        return {}
    mappings = {} if instance.selection is None else instance.selection.mappings
    groups = port.resource_request.request_groups
    suffixes = [port.id] if groups is None else [group.id for group in groups]
    missing = [suffix for suffix in suffixes if not mappings.get(suffix)]
    if missing:
        # The request had no group for the port's resources: no host can give them.
        text = f"port {port.id} needs resources, and the claim has no provider for its group {missing[0]}"
        raise BuildFailed(text, NOT_BOUND, retryable=False)
    served = {suffix: mappings[suffix][0] for suffix in suffixes}
    return {_ALLOCATION: served[port.id] if groups is None else served}


def _device(port: _Port, instance: Instance) -> dict[str, str]:
    """Return the PCI device that was chosen for a port, for the binding profile."""
    assignment = None if instance.selection is None else instance.selection.assignment
    found = [] if assignment is None else [each for each in assignment.devices if each.request == port.id]
    addresses = [address for devices in found for address in devices.addresses]
    return {_ADDRESS: addresses[0]} if addresses else {}


def _attached(port: _Port) -> AttachedPort:
    return AttachedPort(
        id=port.id,
        network_id=port.network_id,
        mac=port.mac_address,
        kind=port.vif_type,
        details=port.vif_details or {},
        address=port.profile.get(_ADDRESS),
    )


def _failure(error: ServiceRefused) -> BuildFailed:
    if error.kind.startswith(_NO_ADDRESSES):
        return BuildFailed(str(error), NO_ADDRESS)
    if error.kind == "OverQuota":
        return BuildFailed(str(error), QUOTA, retryable=False)
    if error.status == HTTPStatus.NOT_FOUND:
        return BuildFailed(str(error), NO_PORT, retryable=False)
    return BuildFailed(str(error), NOT_BOUND)


def _read(answer: object, form: Any) -> Any:
    try:
        return msgspec.convert(answer, form)
    except msgspec.ValidationError as error:
        raise ServiceAway(f"ports: the answer cannot be read: {error}") from error

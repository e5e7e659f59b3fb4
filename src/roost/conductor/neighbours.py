"""Ports and device profiles that a request for instances names, read from the services that have them.

A port's resources, its type and its network come from Neutron's API, and a device profile from Cyborg's,
where the configuration has these services. Values in the request itself are kept.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from roost.conductor.instances.network_types import WantedNetwork, WantedPortGroup, WantedPortResources
from roost.conductor.instances.types import WantedInstances
from roost.fleet.hardware.pci_ports import ON_DEVICES, VnicType
from roost.model.device_profiles import PROFILE
from roost.model.request import RequestGroup
from roost.model.spec import Flavor, NumaPolicy
from roost.process.option_source import Source
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.request.accelerator_options import profiles_from
from roost.scheduler.request.demand.accelerators import profile_groups
from roost.web.auth.json_service import JsonService, ServiceAway, ServiceRefused
from roost.web.errors import BadRequest, Conflict, Unavailable

NETWORKS: Final = ("neutron", "network", "the network service")
ACCELERATORS: Final = ("cyborg", "accelerator", "the accelerator service")
"""The group of the configuration, the type in the catalogue, and the name of each service."""


class _Group(msgspec.Struct):
    id: str
    resources: dict[str, int] = {}
    required: list[str] = []


class _Request(msgspec.Struct):
    """`resource_request`: of groups, or in the form before them, which is one group."""

    request_groups: list[_Group] | None = None
    same_subtree: list[str] = []
    resources: dict[str, int] = {}
    required: list[str] = []


class _Port(
    msgspec.Struct, rename={"vnic_type": "binding:vnic_type", "profile": "binding:profile"}, kw_only=True
):
    network_id: str
    project_id: str = ""
    device_id: str = ""
    vnic_type: VnicType = "normal"
    profile: dict[str, Any] = {}
    resource_request: _Request | None = None
    numa_affinity_policy: NumaPolicy | None = None
    device_profile: str | None = None


class _OnePort(msgspec.Struct):
    port: _Port


class _Network(msgspec.Struct, rename={"physical": "provider:physical_network"}):
    physical: str | None = None


class _OneNetwork(msgspec.Struct):
    network: _Network


class _Profiles(msgspec.Struct):
    device_profiles: list[dict[str, Any]]


class Neighbours:
    """Clients of the network and accelerator services; None: not configured. Close it at the end.

    Requests raise `BadRequest` for what does not exist or belongs to others, `Conflict` for a port that is in
    use, and `Unavailable` if a service does not answer.
    """

    def __init__(self, networks: JsonService | None = None, accelerators: JsonService | None = None) -> None:
        self._networks = networks
        self._accelerators = accelerators

    @classmethod
    def configured(cls, source: Source) -> "Neighbours":
        """The services that the configuration names. Raises `OperatorError`."""
        return cls(*(JsonService.configured(source, *service) for service in (NETWORKS, ACCELERATORS)))

    async def close(self) -> None:
        """Close all connections."""
        for service in (self._networks, self._accelerators):
            if service is not None:
                await service.close()

    async def completed(
        self, wanted: WantedInstances, may_use: Callable[[str], bool]
    ) -> tuple[WantedInstances, tuple[RequestGroup, ...]]:
        """Return the request completed with its ports, and the request groups of its device profiles.

        ``may_use``: returns whether the requester may use the ports of a project.
        """
        try:
            networks = [await self._completed(network, may_use) for network in wanted.networks]
            completed = replace(wanted, networks=tuple(networks))
            return completed, await self._groups(completed)
        except ServiceAway as error:
            raise Unavailable(str(error)) from error
        except (ServiceRefused, BadRequestSpec, ValueError) as error:
            raise BadRequest(str(error)) from error

    async def groups_of(self, flavor: Flavor) -> tuple[RequestGroup, ...] | None:
        """Return the request groups of a flavor's device profile; None: agents attach no devices for it."""
        profile = flavor.extra_specs.get(PROFILE)
        if self._accelerators is None or not profile:
            return None
        try:
            return await self._groups_of(self._accelerators, profile, f"flavor {flavor.name}", "")
        except ServiceAway as error:
            raise Unavailable(str(error)) from error
        except (ServiceRefused, BadRequestSpec, ValueError) as error:
            raise BadRequest(str(error)) from error

    def attaches(self, wanted: WantedInstances) -> bool:
        """Return whether agents attach ports or accelerators to the guests of a request."""
        profiles = [wanted.flavor.extra_specs.get(PROFILE)]
        profiles += [each.device_profile for each in wanted.networks]
        has_ports = self._networks is not None and bool(wanted.networks)
        return has_ports or (self._accelerators is not None and any(profiles))

    async def _completed(self, network: WantedNetwork, may_use: Callable[[str], bool]) -> WantedNetwork:
        if self._networks is None or network.port_id is None:
            return network
        answer = await self._asked(
            self._networks, f"/v2.0/ports/{quote(network.port_id, safe='')}", "port", network.port_id
        )
        port = _read(answer, _OnePort).port
        if not may_use(port.project_id):
            raise BadRequest(_missing("port", network.port_id))
        if port.device_id:
            raise Conflict(f"port {network.port_id} is in use by {port.device_id}")
        known: dict[str, Any] = {
            "network_id": port.network_id,
            "resource_request": _resources(port.resource_request, network.port_id),
            "vnic_type": port.vnic_type,
            "trusted": port.profile.get("trusted"),
            "pci_numa_affinity_policy": port.numa_affinity_policy,
            "device_profile": port.device_profile,
        }
        if port.vnic_type in ON_DEVICES:
            path = f"/v2.0/networks/{port.network_id}"
            of_network = await self._asked(self._networks, path, "network", port.network_id)
            known["physical_network"] = _read(of_network, _OneNetwork).network.physical
        defaults = {field.name: field.default for field in msgspec.structs.fields(network)}
        unsaid = {name: each for name, each in known.items() if getattr(network, name) == defaults[name]}
        return replace(network, **unsaid)

    async def _groups(self, wanted: WantedInstances) -> tuple[RequestGroup, ...]:
        if self._accelerators is None:
            return ()
        named = [(f"flavor {wanted.flavor.name}", wanted.flavor.extra_specs.get(PROFILE), "")]
        of_ports = ((each.port_id or "", each.device_profile) for each in wanted.networks)
        named += [(f"port {port}", profile, port) for port, profile in of_ports]
        found: list[RequestGroup] = []
        for what, name, owner in named:
            if name:
                found.extend(await self._groups_of(self._accelerators, name, what, owner))
        return tuple(found)

    async def _groups_of(
        self, service: JsonService, name: str, what: str, owner: str
    ) -> tuple[RequestGroup, ...]:
        """Return the request groups of a device profile."""
        answer = await service.ask("GET", "/v2/device_profiles", query={"name": name})
        some = [each for each in _read(answer, _Profiles).device_profiles if each.get("name") == name]
        profiles = profiles_from(msgspec.json.encode(each).decode() for each in some)
        return tuple(profile_groups(name, profiles, what, owner))

    async def _asked(self, service: JsonService, path: str, what: str, uuid: str) -> object:
        try:
            return await service.ask("GET", path)
        except ServiceRefused as error:
            if error.status == HTTPStatus.NOT_FOUND:
                raise BadRequest(_missing(what, uuid)) from error
            raise


def _resources(request: _Request | None, port: str) -> WantedPortResources | None:
    if request is None:
        return None
    groups = request.request_groups
    if groups is None:
        groups = [_Group(port, request.resources, request.required)] if request.resources else []
    if not groups:
        return None
    return WantedPortResources(
        tuple(WantedPortGroup(each.id, each.resources, tuple(each.required)) for each in groups),
        tuple(request.same_subtree),
    )


def _missing(what: str, uuid: str) -> str:
    return f"there is no {what} {uuid}"


def _read(answer: object, form: Any) -> Any:
    try:
        return msgspec.convert(answer, form)
    except msgspec.ValidationError as error:
        raise ServiceAway(f"the answer of a service cannot be read: {error}") from error

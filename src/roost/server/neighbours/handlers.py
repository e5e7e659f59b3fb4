"""The handlers of the service's operations over HTTP."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy.engine import Connection

from roost.server.neighbours import accelerators, networks
from roost.server.neighbours.accelerators import ARQ, DeviceProfile, Patch, WantedArqs
from roost.server.neighbours.accelerators import PROFILE as DEVICE_PROFILE
from roost.server.neighbours.errors import Wrong
from roost.server.neighbours.networks import NETWORK, PORT, SUBNET, Network, Port, PortChange, Subnet
from roost.server.neighbours.store import Resource, ResourceKind, every, find
from roost.storage import Database
from roost.web.request import Request, Response

T = TypeVar("T")
Body = TypeVar("Body", bound=msgspec.Struct)

_REVISION: Final = re.compile(r"revision_number=([0-9]{1,9})")


class OneNetwork(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a network."""

    network: Network


class OneSubnet(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a subnet."""

    subnet: Subnet


class OnePort(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a port."""

    port: Port


class OnePortChange(msgspec.Struct, forbid_unknown_fields=True):
    """The body that changes a port."""

    port: PortChange


Patches = dict[str, list[Patch]]
"""The body that binds accelerator requests: uuid of a request -> its changes."""


class NeighbourService:
    """Reads and writes resources in the database of the service. Raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, work: Callable[[Connection], T]) -> T:
        return await self._database.write(work)

    async def find(self, kind: ResourceKind, uuid: str) -> dict[str, Any]:
        return shown(await self._database.read(lambda connection: find(connection, kind, uuid)))

    async def every(
        self, kind: ResourceKind, filters: dict[str, str], instance: str | None
    ) -> list[dict[str, Any]]:
        found = await self._database.read(lambda connection: every(connection, kind, instance=instance))
        return [each for each in map(shown, found) if all(each.get(k) == v for k, v in filters.items())]


def shown(resource: Resource) -> dict[str, Any]:
    """Return a resource as its API shows it. Resources of networks have a revision number."""
    found: dict[str, Any] = msgspec.to_builtins(resource.value)
    if isinstance(resource.value, Network | Subnet | Port):
        found["revision_number"] = resource.revision
    return found


def _without(value: Body, *names: str) -> Body:
    """Return the body of a request. Raises `Wrong` if it has a field that only the service sets."""
    for name in names:
        default = next(each.default for each in msgspec.structs.fields(value) if each.name == name)
        if (given := getattr(value, name)) not in (default, []):
            raise Wrong(f"{name} {given} is not for the client to say")
    return value


# Networks, subnets, ports


async def create_network(service: NeighbourService, req: Request, resp: Response) -> object:
    """Make a network."""
    wanted = _without(req.body.network, "id")
    return {"network": shown(await service.write(lambda c: networks.add_network(c, wanted)))}


async def list_networks(service: NeighbourService, req: Request, resp: Response) -> object:
    """List networks."""
    return {"networks": await service.every(NETWORK, req.query, None)}


async def show_network(service: NeighbourService, req: Request, resp: Response, uuid: str) -> object:
    """Show a network."""
    return {"network": await service.find(NETWORK, uuid)}


async def delete_network(service: NeighbourService, req: Request, resp: Response, uuid: str) -> None:
    """Delete a network without ports."""
    await service.write(lambda c: networks.remove_network(c, uuid))


async def create_subnet(service: NeighbourService, req: Request, resp: Response) -> object:
    """Make a subnet with its pools of addresses."""
    wanted = _without(req.body.subnet, "id")
    return {"subnet": shown(await service.write(lambda c: networks.add_subnet(c, wanted)))}


async def list_subnets(service: NeighbourService, req: Request, resp: Response) -> object:
    """List subnets."""
    return {"subnets": await service.every(SUBNET, req.query, None)}


async def show_subnet(service: NeighbourService, req: Request, resp: Response, uuid: str) -> object:
    """Show a subnet."""
    return {"subnet": await service.find(SUBNET, uuid)}


async def delete_subnet(service: NeighbourService, req: Request, resp: Response, uuid: str) -> None:
    """Delete a subnet none of whose addresses a port has."""
    await service.write(lambda c: networks.remove_subnet(c, uuid))


async def create_port(service: NeighbourService, req: Request, resp: Response) -> object:
    """Make a port with its addresses."""
    wanted = _without(req.body.port, "id", "mac_address", "fixed_ips", "vif_type")
    return {"port": shown(await service.write(lambda c: networks.add_port(c, wanted)))}


async def list_ports(service: NeighbourService, req: Request, resp: Response) -> object:
    """List ports."""
    return {"ports": await service.every(PORT, req.query, req.query.get("device_id"))}


async def show_port(service: NeighbourService, req: Request, resp: Response, uuid: str) -> object:
    """Show a port."""
    return {"port": await service.find(PORT, uuid)}


async def update_port(service: NeighbourService, req: Request, resp: Response, uuid: str) -> object:
    """Change a port. With `If-Match: revision_number=N` only if it has not been changed since."""
    wanted, seen = req.body.port, _revision(req)
    return {"port": shown(await service.write(lambda c: networks.change_port(c, uuid, wanted, seen)))}


async def delete_port(service: NeighbourService, req: Request, resp: Response, uuid: str) -> None:
    """Delete a port. With `If-Match: revision_number=N` only if it has not been changed since."""
    seen = _revision(req)
    await service.write(lambda c: networks.remove_port(c, uuid, seen))


def _revision(req: Request) -> int | None:
    header = req.get_header("if-match")
    if header is None:
        return None
    if (found := _REVISION.fullmatch(header)) is None:
        raise Wrong(f"If-Match: {header} is not revision_number=N")
    return int(found[1])


# Device profiles, accelerator requests


async def create_profile(service: NeighbourService, req: Request, resp: Response) -> object:
    """Make a device profile. As in Cyborg, the body is a list with one."""
    wanted: list[DeviceProfile] = req.body
    if len(wanted) != 1:
        raise Wrong(f"{len(wanted)} device profiles: one is made at a time")
    profile = _without(wanted[0], "uuid")
    return shown(await service.write(lambda c: accelerators.add_profile(c, profile)))


async def list_profiles(service: NeighbourService, req: Request, resp: Response) -> object:
    """List device profiles."""
    return {"device_profiles": await service.every(DEVICE_PROFILE, req.query, None)}


async def show_profile(service: NeighbourService, req: Request, resp: Response, uuid: str) -> object:
    """Show a device profile."""
    return {"device_profile": await service.find(DEVICE_PROFILE, uuid)}


async def delete_profile(service: NeighbourService, req: Request, resp: Response, uuid: str) -> None:
    """Delete a device profile without accelerator requests."""
    await service.write(lambda c: accelerators.remove_profile(c, uuid))


async def create_arqs(service: NeighbourService, req: Request, resp: Response) -> object:
    """Make an accelerator request for each device of a profile."""
    wanted: WantedArqs = req.body
    made = await service.write(lambda c: accelerators.add_arqs(c, wanted.device_profile_name))
    return {"arqs": [shown(each) for each in made]}


async def list_arqs(service: NeighbourService, req: Request, resp: Response) -> object:
    """List accelerator requests. All of them are resolved, as they are bound at once."""
    filters = {key: value for key, value in req.query.items() if key not in ("instance", "bind_state")}
    if req.query.get("bind_state", "resolved") != "resolved":
        raise Wrong(f"bind_state {req.query['bind_state']} is not resolved")
    return {"arqs": await service.every(ARQ, filters, req.query.get("instance"))}


async def show_arq(service: NeighbourService, req: Request, resp: Response, uuid: str) -> object:
    """Show an accelerator request."""
    return await service.find(ARQ, uuid)


async def patch_arqs(service: NeighbourService, req: Request, resp: Response) -> None:
    """Bind accelerator requests to instances, or unbind them: all of them, or none."""
    patches: Patches = req.body
    await service.write(lambda c: accelerators.patch_arqs(c, patches))


async def delete_arqs(service: NeighbourService, req: Request, resp: Response) -> None:
    """Delete the accelerator requests that are named, or those of an instance."""
    arqs, instance = req.query.get("arqs"), req.query.get("instance")
    if (arqs is None) == (instance is None):
        raise Wrong("either arqs or instance says which accelerator requests are deleted")
    if arqs is not None:
        await service.write(lambda c: accelerators.remove_arqs(c, arqs.split(",")))
    else:
        await service.write(lambda c: accelerators.remove_arqs_of(c, instance))

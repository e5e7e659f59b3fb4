"""Instances over HTTP, under ``/v1``: the operations, their types and their handlers.

`OPERATIONS` and `DEFAULT_RULES` are all those of a conductor, those of host aggregates among them.
"""

import asyncio
import uuid as uuids
from dataclasses import dataclass
from typing import Annotated, Final

import falcon.asgi
import msgspec
from msgspec import Meta
from oslo_policy.policy import RuleDefault

from roost import tracing
from roost.auth import Authenticator
from roost.auth.rules import Rules
from roost.conductor.aggregate_operations import AGGREGATE_OPERATIONS, AGGREGATE_RULES
from roost.conductor.aggregate_operations import PATH as AGGREGATES
from roost.conductor.host_aggregates import HostAggregates
from roost.conductor.requests import Requests
from roost.conductor.super_conductor import SuperConductor
from roost.model.allocation import GroupPolicy
from roost.model.instance import BuildRequest, Fault, Instance
from roost.model.spec import Flavor, Hints, Image, RequestedDestination, RequestSpec, ServerGroup
from roost.model.vocabulary import MAX_INT, MAX_NAME
from roost.storage import StorageError
from roost.web.app import Kernel
from roost.web.app import create_app as create_web_app
from roost.web.errors import BadRequest, Conflict, NotFound
from roost.web.operation import Operation
from roost.web.policy import OfProjects, Policy, Rule
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE, Query
from roost.web.request import Request, Response

SCHEDULING = "scheduling"
"""State of an instance that is accepted and not in a cell yet."""

MOST_AT_ONCE = 1000
"""Instances of one request at most. A larger count is refused."""

_ALL_PROJECTS = "conductor:instances:all_projects"
_READ = "role:admin or ((role:reader or role:member) and project_id:%(project_id)s)"
_WRITE = "role:admin or (role:member and project_id:%(project_id)s)"
DEFAULT_RULES: Final = {
    "conductor:instances:create": _WRITE,
    "conductor:instances:list": _READ,
    "conductor:instances:show": _READ,
    "conductor:instances:delete": _WRITE,
    _ALL_PROJECTS: "role:admin",
    **AGGREGATE_RULES,
}
"""The policy rules as they are without a policy file."""

PATHS: Final = ("/v1/instances", AGGREGATES)
"""The paths of a conductor: these, and all below them."""

_Count = Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)]
_Amount = Annotated[int, Meta(ge=0, le=MAX_INT)]
_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


class WantedFlavor(msgspec.Struct, forbid_unknown_fields=True):
    """A flavor in a request."""

    vcpus: _Amount
    memory_mb: _Amount
    disk_gb: _Amount = 0
    name: _Name = "custom"
    extra_specs: dict[str, str] = {}
    ephemeral_gb: _Amount = 0
    swap_mb: _Amount = 0


class WantedImage(msgspec.Struct, forbid_unknown_fields=True):
    """An image in a request. ``properties`` has Nova's keys, such as ``hw_disk_bus``."""

    id: _Name | None = None
    disk_format: _Name | None = None
    properties: dict[str, str] = {}


class WantedGroup(msgspec.Struct, forbid_unknown_fields=True):
    """A server group in a request. ``hosts`` are the hosts of its members so far."""

    uuid: _Name
    policy: GroupPolicy
    hosts: tuple[str, ...] = ()
    max_server_per_host: Annotated[int, Meta(ge=1, le=MAX_INT)] = 1


class WantedInstances(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request. Without ``min_count`` all instances are placed or none."""

    flavor: WantedFlavor
    count: _Count = 1
    min_count: _Count | None = None
    availability_zone: str | None = None
    group: WantedGroup | None = None
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()
    requested_host: str | None = None
    image: WantedImage | None = None
    volume_backed: bool = False
    ignore_hosts: frozenset[str] = frozenset()
    scheduler_hints: dict[str, str | tuple[str, ...]] = {}

    @property
    def hints(self) -> Hints:
        """The scheduler hints; one value is a list of one."""
        return {
            key: (value,) if isinstance(value, str) else value for key, value in self.scheduler_hints.items()
        }

    @property
    def destination(self) -> RequestedDestination | None:
        """The place that the request is restricted to."""
        return RequestedDestination(host=self.requested_host) if self.requested_host is not None else None

    def __post_init__(self) -> None:
        if self.min_count is not None and self.min_count > self.count:
            raise ValueError(f"min_count {self.min_count} is more than count {self.count}")


class InstancesQuery(OfProjects, forbid_unknown_fields=True):
    """The query of a list of instances."""

    request_id: Annotated[str | None, Meta(description="Only the instances of one request.")] = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Instances on a page.")] = DEFAULT_PAGE
    marker: Annotated[
        str | None, Meta(description="`next` of the page before: the page begins after this uuid.")
    ] = None


class AcceptedInstances(msgspec.Struct, forbid_unknown_fields=True):
    """A request that is accepted, and durable: the uuids that its instances will have."""

    request_id: str
    instances: tuple[str, ...]


class ShownInstance(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An instance. ``attempt`` counts the hosts it was assigned to; ``faults`` say why attempts failed."""

    uuid: str
    request_id: str
    project_id: str
    user_id: str
    flavor: str
    state: str
    cell: str | None
    host: str | None
    attempt: int
    reason: str | None
    faults: list[Fault]


class InstancePage(msgspec.Struct, forbid_unknown_fields=True):
    """Instances in order of their uuids. ``next`` is the marker of the next page, null on the last one."""

    instances: list[ShownInstance]
    next: str | None


@dataclass(frozen=True)
class Service:
    """What the handlers work with."""

    conductor: SuperConductor
    requests: Requests
    aggregates: HostAggregates


def create_app(
    conductor: SuperConductor,
    requests: Requests,
    aggregates: HostAggregates,
    authenticator: Authenticator,
    rules: Rules | None = None,
) -> falcon.asgi.App:  # type: ignore[type-arg]
    """The API of a super conductor. ``rules`` are by default those without a policy file."""
    defaults = [RuleDefault(name, check, scope_types=["project"]) for name, check in DEFAULT_RULES.items()]
    policy = Policy(rules or Rules(defaults, None, True))
    service = Service(conductor, requests, aggregates)
    return create_web_app(OPERATIONS, Kernel(service, authenticator, policy, unavailable=(StorageError,)))


async def create_instances(service: Service, req: Request, resp: Response) -> AcceptedInstances:
    """Ask for instances. The request is durable when it is answered."""
    identity, wanted = req.identity, req.body
    for name in (identity.user_id, identity.project_id or ""):
        if len(name) > MAX_NAME:
            raise BadRequest(f"user and project have {MAX_NAME} characters at most, not {len(name)}")
    request = BuildRequest(
        request_id=req.request_id,
        global_request_id=req.observation.ids.of_caller,
        trace=tracing.headers(),
        spec=RequestSpec(
            project_id=identity.project_id or "",
            user_id=identity.user_id,
            flavor=Flavor(**msgspec.structs.asdict(wanted.flavor)),
            availability_zone=wanted.availability_zone,
            group=ServerGroup(**msgspec.structs.asdict(wanted.group)) if wanted.group else None,
            required_traits=wanted.required_traits,
            forbidden_traits=wanted.forbidden_traits,
            image=Image(**msgspec.structs.asdict(wanted.image)) if wanted.image else None,
            volume_backed=wanted.volume_backed,
            requested_destination=wanted.destination,
            ignore_hosts=wanted.ignore_hosts,
            scheduler_hints=wanted.hints,
        ),
        instances=tuple(str(uuids.uuid4()) for _ in range(wanted.count)),
        min_count=wanted.min_count or wanted.count,
    )
    await service.conductor.accept(request)
    return AcceptedInstances(request.request_id, request.instances)


async def list_instances(service: Service, req: Request, resp: Response) -> InstancePage:
    """List instances by page.

    The list has the instances of the token's project. `project_id` names another project and `all_projects`
    asks for all of them, which is for administrators.
    """
    query: InstancesQuery = req.query
    waiting = [
        _scheduling(request, uuid)
        async for request in service.requests.waiting(query.request_id)
        if req.projects.include(request.spec.project_id)
        for uuid in request.instances
        if uuid > (query.marker or "")
    ]
    # A request waits until all its instances are in cells. An instance in a cell is shown from there.
    cells = service.conductor.cells
    project_id = None if req.projects.all else req.projects.project_id
    found = await asyncio.gather(
        *(
            cell.page(query.limit + 1, query.marker or "", query.request_id, project_id)
            for cell in cells.values()
        )
    )
    shown = {instance.uuid: instance for instance in waiting}
    for name, instances in zip(cells, found, strict=True):
        shown.update({instance.uuid: _shown(instance, name) for instance in instances})
    page = [shown[uuid] for uuid in sorted(shown)[: query.limit]]
    return InstancePage(page, page[-1].uuid if len(shown) > query.limit else None)


async def show_instance(service: Service, req: Request, resp: Response, uuid: str) -> ShownInstance:
    """Show an instance, with the reasons of its failed attempts."""
    return await _find(service, req, uuid)


async def delete_instance(service: Service, req: Request, resp: Response, uuid: str) -> None:
    """Delete an instance. It is marked for deletion when this is answered; its host destroys it later."""
    await _find(service, req, uuid)
    if not await service.conductor.delete([uuid]):
        if await service.requests.waiting_for(uuid):
            raise Conflict(f"instance {uuid} is on its way to a cell; try again")
        # It may have arrived there between the two reads.
        if not await service.conductor.delete([uuid]):
            raise NotFound(f"no instance {uuid}")


async def _find(service: Service, req: Request, uuid: str) -> ShownInstance:
    """An instance of a project that the request may reach. Raises `NotFound` for all others."""
    shown = await _in_cell(service, uuid)
    if shown is None:
        request = await service.requests.waiting_for(uuid)
        shown = _scheduling(request, uuid) if request is not None else None
        # It may have gone from there to its cell between the two reads.
        shown = shown or await _in_cell(service, uuid)
    if shown is None or not req.projects.include(shown.project_id):
        raise NotFound(f"no instance {uuid}")
    return shown


async def _in_cell(service: Service, uuid: str) -> ShownInstance | None:
    for name, cell in service.conductor.cells.items():
        found = await cell.find([uuid])
        if uuid in found:
            return _shown(found[uuid], name, await cell.faults_of(uuid))
    return None


def _shown(instance: Instance, cell: str, faults: list[Fault] | None = None) -> ShownInstance:
    return ShownInstance(
        uuid=instance.uuid,
        request_id=instance.request_id,
        project_id=instance.project_id,
        user_id=instance.user_id,
        flavor=instance.flavor,
        state=instance.state,
        cell=cell,
        host=instance.host,
        attempt=instance.attempt,
        reason=instance.reason,
        faults=faults or [],
    )


def _scheduling(request: BuildRequest, uuid: str) -> ShownInstance:
    return ShownInstance(
        uuid=uuid,
        request_id=request.request_id,
        project_id=request.spec.project_id,
        user_id=request.spec.user_id,
        flavor=request.spec.flavor.name,
        state=SCHEDULING,
        cell=None,
        host=None,
        attempt=0,
        reason=None,
        faults=[],
    )


def _rule(verb: str) -> Rule:
    return Rule(f"conductor:instances:{verb}", all_projects=_ALL_PROJECTS)


OPERATIONS: Final = (
    Operation(
        "POST",
        "/v1/instances",
        _rule("create"),
        create_instances,
        body=WantedInstances,
        takes=(),  # curl -d says that its data is a form
        answer=AcceptedInstances,
        status=202,
    ),
    Operation(
        "GET",
        "/v1/instances",
        _rule("list"),
        list_instances,
        query=Query(InstancesQuery),
        answer=InstancePage,
    ),
    Operation("GET", "/v1/instances/{uuid}", _rule("show"), show_instance, answer=ShownInstance),
    Operation(
        "DELETE",
        "/v1/instances/{uuid}",
        _rule("delete"),
        delete_instance,
        status=202,
        provides=(),
        raises=(Conflict,),
    ),
    *AGGREGATE_OPERATIONS,
)

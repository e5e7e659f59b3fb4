"""The operations of instances, their handlers and policy rules."""

import uuid as uuids
from dataclasses import replace
from typing import Final, Protocol

import msgspec

from roost.conductor.history.operations import history_operation
from roost.conductor.hosts.registry import HostRegistry
from roost.conductor.hosts.watch import ServiceWatch, check_feature
from roost.conductor.instances.types import (
    AcceptedInstances,
    InstancePage,
    InstancesQuery,
    ShownInstance,
    WantedInstances,
    WordOfOperator,
)
from roost.conductor.instances.views import InstanceViews
from roost.conductor.neighbours import Neighbours
from roost.conductor.request_check import RequestCheck
from roost.conductor.requester import owner_of, requester_of
from roost.conductor.super_conductor import SuperConductor
from roost.model.instance import BuildRequest
from roost.model.service_version import ATTACHMENTS
from roost.model.spec import Flavor, Image, RequestSpec, ServerGroup
from roost.process import tracing
from roost.state.api_database.mappings import InstanceMapping
from roost.state.api_database.request_reads import Requests
from roost.state.api_database.server_groups import NoSuchServerGroup, ServerGroups
from roost.web.errors import BadRequest, Conflict, NotFound
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import ADMIN, PROJECT_READER, PROJECT_WRITER, Rule
from roost.web.query import Query
from roost.web.request import Request, Response

PATH: Final = "/v1/instances"
_ONE: Final = f"{PATH}/{{uuid}}"
ALL_PROJECTS: Final = "conductor:instances:all_projects"
"""The rule that allows access to the instances of all projects."""
_REQUESTED_DESTINATION = "conductor:instances:create:requested_destination"
_FORCED_HOST = "conductor:instances:create:forced_host"

INSTANCE_RULES: Final = {
    "conductor:instances:create": PROJECT_WRITER,
    "conductor:instances:list": PROJECT_READER,
    "conductor:instances:show": PROJECT_READER,
    "conductor:instances:delete": PROJECT_WRITER,
    "conductor:instances:give_up": ADMIN,
    ALL_PROJECTS: ADMIN,
    _REQUESTED_DESTINATION: ADMIN,
    _FORCED_HOST: ADMIN,
}
"""The policy rules as they are without a policy file."""


class ShowsInstances(Protocol):
    """The part of the conductor's service that shows instances."""

    @property
    def instances(self) -> InstanceViews: ...


class InstanceService(ShowsInstances, Protocol):
    """The part of the conductor's service that the handlers need."""

    @property
    def conductor(self) -> SuperConductor: ...

    @property
    def requests(self) -> Requests: ...

    @property
    def groups(self) -> ServerGroups: ...

    @property
    def hosts(self) -> HostRegistry: ...

    @property
    def watch(self) -> ServiceWatch: ...

    @property
    def neighbours(self) -> Neighbours: ...

    @property
    def checks(self) -> RequestCheck: ...


async def create_instances(service: InstanceService, req: Request, resp: Response) -> AcceptedInstances:
    """Ask for instances. The request is durable when it is answered.

    A request that can never be served is refused. `warnings` tell what of it has no effect.
    """
    project_id, user_id = owner_of(req)
    wanted, of_profiles = await service.neighbours.completed(req.body, req.projects.include)
    attaches = service.neighbours.attaches(wanted)
    if attaches:
        check_feature(service.watch, ATTACHMENTS)
    request = BuildRequest(
        request_id=req.request_id,
        global_request_id=req.observation.ids.of_caller,
        trace=tracing.headers(),
        spec=RequestSpec(
            project_id=project_id,
            user_id=user_id,
            flavor=Flavor(**msgspec.structs.asdict(wanted.flavor)),
            availability_zone=wanted.availability_zone,
            group=await _group_of(service, req, wanted),
            requested_resources=(*wanted.port_groups, *of_profiles),
            same_subtree=wanted.subtrees,
            requested_networks=tuple(network.requested for network in wanted.networks),
            pci_requests=tuple(
                request for network in wanted.networks if (request := network.pci_request) is not None
            ),
            required_traits=wanted.required_traits,
            forbidden_traits=wanted.forbidden_traits,
            image=Image(**msgspec.structs.asdict(wanted.image)) if wanted.image else None,
            volume_backed=wanted.volume_backed,
            requested_destination=wanted.destination,
            force_hosts=(wanted.forced_host,) if wanted.forced_host is not None else (),
            force_nodes=(wanted.forced_node,) if wanted.forced_node is not None else (),
            ignore_hosts=wanted.ignore_hosts,
            scheduler_hints=wanted.hints,
            needs_version=ATTACHMENTS.since if attaches else 0,
        ),
        instances=tuple(str(uuids.uuid4()) for _ in range(wanted.count)),
        min_count=wanted.min_count or wanted.count,
        name=wanted.name,
    )
    warnings = await service.checks.warnings(request.spec)
    accepted = AcceptedInstances(request.request_id, request.instances, warnings)
    await service.conductor.accept(request, req.keyed(accepted))
    return accepted


async def _group_of(service: InstanceService, req: Request, wanted: WantedInstances) -> ServerGroup | None:
    """The server group of a request. Policy and rules are those of the stored group, if it names one.

    Raises:
        BadRequest: The hints name a group that does not exist.
        NoSuchServerGroup: The group belongs to a project that the request may not reach.
    """
    hint, own = wanted.group_hint, wanted.group
    uuid = hint if own is None else own.uuid
    if uuid is None:
        return None
    stored = await service.groups.known(uuid)
    if stored is None:
        if own is None or hint is not None:
            raise BadRequest(f"the hint group names server group {uuid}, which does not exist")
        return ServerGroup(**msgspec.structs.asdict(own))
    if not req.projects.include(stored.project_id):
        raise NoSuchServerGroup(uuid)
    hosts = () if own is None else own.hosts
    return ServerGroup(uuid, stored.policy, hosts, stored.max_server_per_host)


async def list_instances(service: InstanceService, req: Request, resp: Response) -> InstancePage:
    """List instances by page.

    The list has the instances of the token's project. `project_id` names another project and `all_projects`
    asks for all of them, which is for administrators.
    """
    query: InstancesQuery = req.query
    return await service.instances.page(query, None if req.projects.all else req.projects.project_id)


async def show_instance(service: InstanceService, req: Request, resp: Response, uuid: str) -> ShownInstance:
    """Show an instance, with the reasons of its failed attempts. A project sees its own without hosts."""
    return await _find(service, req, uuid)


async def delete_instance(service: InstanceService, req: Request, resp: Response, uuid: str) -> None:
    """Delete an instance. The deletion is durable when this is answered; its host destroys it later."""
    mapping = await service.requests.mapping(uuid)
    if mapping is None or not await is_reachable(service, req, mapping):
        raise NotFound(f"no instance {uuid}")
    if mapping.deleted:
        # It may be gone, with only the mapping left.
        await _find(service, req, uuid)
    await service.conductor.delete([uuid], requester_of(req))


async def give_up_instance(service: InstanceService, req: Request, resp: Response, uuid: str) -> None:
    """Give up an instance whose guest is gone for good, as an operator knows.

    One that starts on a host that is down is tried on another host. One that is lost, or ran on a host that
    is down, is in error, and its claim is freed. The evidence is in its reason.
    """
    word: WordOfOperator = req.body
    mapping = await service.requests.mapping(uuid)
    if mapping is None or mapping.cell is None or not await is_reachable(service, req, mapping):
        raise NotFound(f"no instance {uuid} in a cell")
    evidence = f"{owner_of(req)[1]} says that its guest is gone for good: {word.evidence.strip()}"
    await service.hosts.give_up_instance(mapping.cell, uuid, evidence, requester_of(req))


async def is_reachable(service: ShowsInstances, req: Request, mapping: InstanceMapping) -> bool:
    """Return whether a request may reach the instance of a mapping."""
    if mapping.project_id:
        return req.projects.include(mapping.project_id)
    # An earlier version wrote the mapping: only the cell knows the project of the instance.
    shown = await service.instances.find(mapping.instance_uuid)
    return shown is not None and req.projects.include(shown.project_id)


async def _find(service: InstanceService, req: Request, uuid: str) -> ShownInstance:
    """An instance of a project that the request may reach. Raises `NotFound` for all others."""
    shown = await service.instances.find(uuid)
    if shown is None or not req.projects.include(shown.project_id):
        raise NotFound(f"no instance {uuid}")
    return shown


def _rules_of(wanted: WantedInstances) -> list[str]:
    """Return the further rules that must allow a request for instances. Source: Nova's policy of servers."""
    rules = []
    if wanted.destination is not None:
        rules.append(_REQUESTED_DESTINATION)
    if wanted.is_forced:
        rules.append(_FORCED_HOST)
    return rules


def _rule(verb: str) -> Rule:
    return Rule(f"conductor:instances:{verb}", all_projects=ALL_PROJECTS)


INSTANCE_OPERATIONS: Final = (
    Operation(
        "POST",
        PATH,
        replace(_rule("create"), of_body=_rules_of),
        create_instances,
        body=WantedInstances,
        takes=(),  # curl -d says that its data is a form
        answer=AcceptedInstances,
        status=202,
        raises=(Conflict,),
        creates=Creation(),
    ),
    Operation(
        "GET",
        PATH,
        _rule("list"),
        list_instances,
        query=Query(InstancesQuery),
        answer=InstancePage,
    ),
    Operation("GET", _ONE, _rule("show"), show_instance, answer=ShownInstance),
    history_operation(_ONE, ALL_PROJECTS),
    Operation(
        "DELETE",
        _ONE,
        _rule("delete"),
        delete_instance,
        status=202,
        provides=(),
    ),
    Operation(
        "POST",
        f"{_ONE}/give-up",
        _rule("give_up"),
        give_up_instance,
        body=WordOfOperator,
        takes=(),
        status=202,
        provides=(),
        raises=(Conflict,),
    ),
)

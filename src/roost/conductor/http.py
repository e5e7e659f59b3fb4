"""Instances over HTTP, under ``/v1``: the operations and their handlers.

`OPERATIONS` and `DEFAULT_RULES` are those of the whole conductor, with aggregates, hosts, events and so on.
"""

import uuid as uuids
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import falcon.asgi
import msgspec
from oslo_policy.policy import RuleDefault

from roost.conductor.aggregates.host_aggregates import HostAggregates
from roost.conductor.aggregates.operations import AGGREGATE_OPERATIONS, AGGREGATE_RULES
from roost.conductor.aggregates.operations import PATH as AGGREGATES
from roost.conductor.audit.operations import AUDIT_OPERATIONS, AUDIT_RULES
from roost.conductor.audit.operations import PATH as AUDIT
from roost.conductor.events.operations import EVENT_OPERATIONS, EVENT_RULES
from roost.conductor.events.operations import PATH as EVENTS
from roost.conductor.events.reader import EventReader
from roost.conductor.history.operations import HISTORY_RULES, history_operation
from roost.conductor.history.views import Histories
from roost.conductor.hosts.cells import CellRegistry
from roost.conductor.hosts.features import check_feature
from roost.conductor.hosts.operations import CELLS, HOST_OPERATIONS, HOST_RULES, HOSTS, SERVICES
from roost.conductor.hosts.registry import HostRegistry
from roost.conductor.hosts.watch import ServiceWatch
from roost.conductor.instance_types import (
    AcceptedInstances,
    InstancePage,
    InstancesQuery,
    ShownInstance,
    WantedInstances,
    WordOfOperator,
)
from roost.conductor.instance_views import InstanceViews
from roost.conductor.neighbours import Neighbours
from roost.conductor.request_check import RequestCheck
from roost.conductor.requester import owner_of, requester_of
from roost.conductor.server_groups.operations import PATH as SERVER_GROUPS
from roost.conductor.server_groups.operations import SERVER_GROUP_OPERATIONS, SERVER_GROUP_RULES
from roost.conductor.super_conductor import SuperConductor
from roost.ledger import LedgerBusy
from roost.model.instance import BuildRequest
from roost.model.service_version import ATTACHMENTS
from roost.model.spec import Flavor, Image, RequestSpec, ServerGroup
from roost.placement.interface import Placement
from roost.placement.options import PlacementOptions
from roost.process import tracing
from roost.records import RecordQueue
from roost.state.api_database.kept_answers import StoredAnswers
from roost.state.api_database.mappings import InstanceMapping
from roost.state.api_database.request_reads import Requests
from roost.state.api_database.server_groups import NoSuchServerGroup, ServerGroups
from roost.storage import StorageError
from roost.web.app import Kernel
from roost.web.app import create_app as create_web_app
from roost.web.auth import Authenticator
from roost.web.auth.rules import PolicyRules
from roost.web.conventions import Conventions
from roost.web.cors import Cors
from roost.web.errors import BadRequest, Conflict, NotFound
from roost.web.forwarded import through_proxies
from roost.web.health_operations import DOCUMENTED
from roost.web.idempotency import Creation
from roost.web.openapi import OpenApi, describe
from roost.web.operation import OPEN, Operation
from roost.web.policy import ADMIN, PROJECT_READER, PROJECT_WRITER, Policy, Rule
from roost.web.query import Query
from roost.web.request import Request, Response

_ALL_PROJECTS = "conductor:instances:all_projects"
_REQUESTED_DESTINATION = "conductor:instances:create:requested_destination"
_FORCED_HOST = "conductor:instances:create:forced_host"
DEFAULT_RULES: Final = {
    "conductor:instances:create": PROJECT_WRITER,
    "conductor:instances:list": PROJECT_READER,
    "conductor:instances:show": PROJECT_READER,
    "conductor:instances:delete": PROJECT_WRITER,
    "conductor:instances:give_up": ADMIN,
    _ALL_PROJECTS: ADMIN,
    _REQUESTED_DESTINATION: ADMIN,
    _FORCED_HOST: ADMIN,
    **AGGREGATE_RULES,
    **AUDIT_RULES,
    **EVENT_RULES,
    **HISTORY_RULES,
    **HOST_RULES,
    **SERVER_GROUP_RULES,
}
"""The policy rules as they are without a policy file."""

PATHS: Final = ("/v1/instances", AGGREGATES, AUDIT, CELLS, EVENTS, HOSTS, SERVER_GROUPS, SERVICES)
"""The paths of a conductor: these, and all below them."""


@dataclass(frozen=True)
class ConductorService:
    """The services of a super conductor that its HTTP handlers use."""

    conductor: SuperConductor
    requests: Requests
    instances: InstanceViews
    histories: Histories
    aggregates: HostAggregates
    groups: ServerGroups
    placement: Placement
    hosts: HostRegistry
    cells: CellRegistry
    watch: ServiceWatch
    events: EventReader
    neighbours: Neighbours
    checks: RequestCheck


def create_app(
    conductor: SuperConductor,
    requests: Requests,
    aggregates: HostAggregates,
    groups: ServerGroups,
    placement: Placement,
    authenticator: Authenticator,
    rules: PolicyRules | None = None,
    options: PlacementOptions | None = None,
    *,
    records: RecordQueue | None = None,
    neighbours: Neighbours | None = None,
    documented: bool = False,
) -> falcon.asgi.App:  # type: ignore[type-arg]
    """Return the API of a super conductor.

    ``rules`` are by default those without a policy file. ``records``: the runs of the scheduler, for
    histories. ``neighbours``: the services that know ports and device profiles; None: there are none.
    ``documented``: the API serves the OpenAPI document of these operations, as in a process that serves
    nothing else.
    """
    instances = InstanceViews(requests, conductor.cells, placement)
    histories = Histories(requests.database, conductor.cells, records)
    hosts = HostRegistry(requests.database, conductor.cells, placement, conductor.watch, aggregates.words)
    known = CellRegistry(requests.database, conductor.cells, conductor.watch, aggregates.words)
    service = ConductorService(
        conductor,
        requests,
        instances,
        histories,
        aggregates,
        groups,
        placement,
        hosts,
        known,
        conductor.watch,
        EventReader(requests.database, conductor.cells, conductor.watch),
        neighbours or Neighbours(),
        RequestCheck(conductor.scheduler, aggregates.store),
    )
    operations = (*OPERATIONS, DOCUMENT) if documented else OPERATIONS
    options = options or PlacementOptions()
    proxies = options.proxies
    kernel = Kernel(
        service,
        authenticator,
        Policy(rules or PolicyRules(default_rules(), None, True)),
        Conventions("conductor"),
        unavailable=(LedgerBusy, StorageError),
        request_type=Request if proxies is None else through_proxies(Request, proxies),
        middleware=(Cors(options.cors),) if options.cors.allowed_origin else (),
        body_seconds=options.limits.body_seconds,
        answers=StoredAnswers(requests.database),
    )
    return create_web_app(operations, kernel)


def default_rules() -> list[RuleDefault]:
    """The rules without a policy file."""
    return [RuleDefault(name, check, scope_types=["project"]) for name, check in DEFAULT_RULES.items()]


async def create_instances(service: ConductorService, req: Request, resp: Response) -> AcceptedInstances:
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


async def _group_of(service: ConductorService, req: Request, wanted: WantedInstances) -> ServerGroup | None:
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


async def list_instances(service: ConductorService, req: Request, resp: Response) -> InstancePage:
    """List instances by page.

    The list has the instances of the token's project. `project_id` names another project and `all_projects`
    asks for all of them, which is for administrators.
    """
    query: InstancesQuery = req.query
    return await service.instances.page(query, None if req.projects.all else req.projects.project_id)


async def show_instance(service: ConductorService, req: Request, resp: Response, uuid: str) -> ShownInstance:
    """Show an instance, with the reasons of its failed attempts. A project sees its own without hosts."""
    return await _find(service, req, uuid)


async def delete_instance(service: ConductorService, req: Request, resp: Response, uuid: str) -> None:
    """Delete an instance. The deletion is durable when this is answered; its host destroys it later."""
    mapping = await service.requests.mapping(uuid)
    if mapping is None or not await _includes(service, req, mapping):
        raise NotFound(f"no instance {uuid}")
    if mapping.deleted:
        # It may be gone, with only the mapping left.
        await _find(service, req, uuid)
    await service.conductor.delete([uuid], requester_of(req))


async def give_up_instance(service: ConductorService, req: Request, resp: Response, uuid: str) -> None:
    """Give up an instance whose guest is gone for good, as an operator knows.

    One that starts on a host that is down is tried on another host. One that is lost, or ran on a host that
    is down, is in error, and its claim is freed. The evidence is in its reason.
    """
    word: WordOfOperator = req.body
    mapping = await service.requests.mapping(uuid)
    if mapping is None or mapping.cell is None or not await _includes(service, req, mapping):
        raise NotFound(f"no instance {uuid} in a cell")
    evidence = f"{owner_of(req)[1]} says that its guest is gone for good: {word.evidence.strip()}"
    await service.hosts.give_up_instance(mapping.cell, uuid, evidence, requester_of(req))


async def _includes(service: ConductorService, req: Request, mapping: InstanceMapping) -> bool:
    """Return whether a request may reach the instance of a mapping."""
    if mapping.project_id:
        return req.projects.include(mapping.project_id)
    # An earlier version wrote the mapping: only the cell knows the project of the instance.
    shown = await service.instances.find(mapping.instance_uuid)
    return shown is not None and req.projects.include(shown.project_id)


async def _find(service: ConductorService, req: Request, uuid: str) -> ShownInstance:
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
    return Rule(f"conductor:instances:{verb}", all_projects=_ALL_PROJECTS)


OPERATIONS: Final = (
    Operation(
        "POST",
        "/v1/instances",
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
        "/v1/instances",
        _rule("list"),
        list_instances,
        query=Query(InstancesQuery),
        answer=InstancePage,
    ),
    Operation("GET", "/v1/instances/{uuid}", _rule("show"), show_instance, answer=ShownInstance),
    history_operation("/v1/instances/{uuid}", _ALL_PROJECTS),
    Operation(
        "DELETE",
        "/v1/instances/{uuid}",
        _rule("delete"),
        delete_instance,
        status=202,
        provides=(),
    ),
    Operation(
        "POST",
        "/v1/instances/{uuid}/give-up",
        _rule("give_up"),
        give_up_instance,
        body=WordOfOperator,
        takes=(),
        status=202,
        provides=(),
        raises=(Conflict,),
    ),
    *AGGREGATE_OPERATIONS,
    *AUDIT_OPERATIONS,
    *EVENT_OPERATIONS,
    *HOST_OPERATIONS,
    *SERVER_GROUP_OPERATIONS,
)


async def describe_conductor_api(service: object, req: Request, resp: Response) -> msgspec.Raw:
    """This document."""
    return _document()


DOCUMENT: Final = Operation("GET", "/v1/openapi.json", OPEN, describe_conductor_api, answer=OpenApi)
"""The operation that serves the OpenAPI document, in a process that serves nothing but a conductor."""


@cache
def _document() -> msgspec.Raw:
    described = describe(
        (*OPERATIONS, DOCUMENT, *DOCUMENTED),
        Conventions("conductor"),
        title="Roost's conductor",
        text="Instances are asked for, listed and deleted; cells and hosts are added, changed and removed; "
        "host aggregates and server groups are kept.",
    )
    return msgspec.Raw(msgspec.json.encode(described))

"""The HTTP API of a conductor, under ``/v1``: all of its operations and rules, and the application."""

from dataclasses import dataclass
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
from roost.conductor.history.operations import HISTORY_RULES
from roost.conductor.history.views import Histories
from roost.conductor.hosts.cells import CellRegistry
from roost.conductor.hosts.operations import CELLS, HOST_OPERATIONS, HOST_RULES, HOSTS, SERVICES
from roost.conductor.hosts.registry import HostRegistry
from roost.conductor.hosts.watch import ServiceWatch
from roost.conductor.instances.operations import INSTANCE_OPERATIONS, INSTANCE_RULES
from roost.conductor.instances.operations import PATH as INSTANCES
from roost.conductor.instances.power import POWER_OPERATIONS, POWER_RULES
from roost.conductor.instances.rebuild import REBUILD_OPERATIONS, REBUILD_RULES
from roost.conductor.instances.shelve import SHELVE_OPERATIONS, SHELVE_RULES
from roost.conductor.instances.views import InstanceViews
from roost.conductor.maintenance.operations import MAINTENANCE_OPERATIONS, MAINTENANCE_RULES
from roost.conductor.maintenance.operations import PATH as MAINTENANCES
from roost.conductor.maintenance.views import MaintenanceViews
from roost.conductor.moves.operations import MOVE_OPERATIONS, MOVE_RULES
from roost.conductor.moves.operations import PATH as MOVES
from roost.conductor.moves.views import MoveViews
from roost.conductor.neighbours import Neighbours
from roost.conductor.request_check import RequestCheck
from roost.conductor.server_groups.operations import PATH as SERVER_GROUPS
from roost.conductor.server_groups.operations import SERVER_GROUP_OPERATIONS, SERVER_GROUP_RULES
from roost.conductor.super_conductor import SuperConductor
from roost.ledger import LedgerBusy
from roost.placement.interface import Placement
from roost.placement.options import PlacementOptions
from roost.records import RecordQueue
from roost.state.api_database.kept_answers import StoredAnswers
from roost.state.api_database.request_reads import Requests
from roost.state.api_database.server_groups import ServerGroups
from roost.storage import StorageError
from roost.web.app import Kernel
from roost.web.app import create_app as create_web_app
from roost.web.auth import Authenticator
from roost.web.auth.rules import PolicyRules
from roost.web.conventions import Conventions
from roost.web.cors import Cors
from roost.web.forwarded import through_proxies
from roost.web.health_operations import DOCUMENTED
from roost.web.openapi import OpenApi, describe
from roost.web.operation import OPEN, Operation
from roost.web.policy import Policy
from roost.web.request import Request, Response

DEFAULT_RULES: Final = {
    **INSTANCE_RULES,
    **POWER_RULES,
    **REBUILD_RULES,
    **SHELVE_RULES,
    **AGGREGATE_RULES,
    **AUDIT_RULES,
    **EVENT_RULES,
    **HISTORY_RULES,
    **HOST_RULES,
    **MAINTENANCE_RULES,
    **MOVE_RULES,
    **SERVER_GROUP_RULES,
}
"""The policy rules as they are without a policy file."""

PATHS: Final = (
    INSTANCES,
    AGGREGATES,
    AUDIT,
    CELLS,
    EVENTS,
    HOSTS,
    MAINTENANCES,
    MOVES,
    SERVER_GROUPS,
    SERVICES,
)
"""The paths of a conductor: these, and all below them."""


@dataclass(frozen=True)
class ConductorService:
    """The services of a super conductor that its HTTP handlers use."""

    conductor: SuperConductor
    requests: Requests
    instances: InstanceViews
    moves: MoveViews
    maintenances: MaintenanceViews
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
        MoveViews(conductor.cells),
        MaintenanceViews(requests.database, conductor.cells),
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


OPERATIONS: Final = (
    *INSTANCE_OPERATIONS,
    *POWER_OPERATIONS,
    *REBUILD_OPERATIONS,
    *SHELVE_OPERATIONS,
    *AGGREGATE_OPERATIONS,
    *AUDIT_OPERATIONS,
    *EVENT_OPERATIONS,
    *HOST_OPERATIONS,
    *MAINTENANCE_OPERATIONS,
    *MOVE_OPERATIONS,
    *SERVER_GROUP_OPERATIONS,
)


async def describe_conductor_api(service: object, req: Request, resp: Response) -> msgspec.Raw:
    """This document."""
    return document()


DOCUMENT: Final = Operation("GET", "/v1/openapi.json", OPEN, describe_conductor_api, answer=OpenApi)
"""The operation that serves the OpenAPI document, in a process that serves nothing but a conductor."""


@cache
def document() -> msgspec.Raw:
    """Return the document as JSON."""
    described = describe(
        (*OPERATIONS, DOCUMENT, *DOCUMENTED),
        Conventions("conductor"),
        title="Roost's conductor",
        text="Instances are asked for, listed, moved and deleted; cells and hosts are added, changed and "
        "removed; host aggregates and server groups are kept.",
    )
    return msgspec.Raw(msgspec.json.encode(described))

"""The application of the dashboard: its operations, and the rules of who may see them."""

from typing import Final

import falcon.asgi
from oslo_policy.policy import RuleDefault

from roost.conductor import http as conductor_api
from roost.dashboard.actions.confirmation_page import CONFIRMATIONS
from roost.dashboard.actions.instance_act_page import INSTANCE_QUESTIONS
from roost.dashboard.actions.maintenance_act_page import MAINTENANCE_QUESTIONS
from roost.dashboard.actions.operations import ACTION_OPERATIONS
from roost.dashboard.addresses import ROOT
from roost.dashboard.asset_operations import ASSET_OPERATIONS
from roost.dashboard.conventions import DashboardConventions
from roost.dashboard.fleet.map_operations import MAP_OPERATIONS
from roost.dashboard.live.live_operations import LIVE_OPERATIONS
from roost.dashboard.page import Page
from roost.dashboard.pages.cells import CELLS
from roost.dashboard.pages.decision import DECISION_PAGE
from roost.dashboard.pages.decisions import DECISIONS_PAGE
from roost.dashboard.pages.events import EVENTS
from roost.dashboard.pages.flavors import FLAVORS_PAGE
from roost.dashboard.pages.fleet_map import FLEET_MAP
from roost.dashboard.pages.host import HOST
from roost.dashboard.pages.hosts import HOSTS
from roost.dashboard.pages.instance import INSTANCE
from roost.dashboard.pages.instances import INSTANCES
from roost.dashboard.pages.maintenance import MAINTENANCE
from roost.dashboard.pages.maintenances import MAINTENANCES
from roost.dashboard.pages.overview import OVERVIEW
from roost.dashboard.pages.redecision import REDECISION_PAGE
from roost.dashboard.pages.series import SERIES
from roost.dashboard.pages.what_if import WHAT_IF_PAGE
from roost.dashboard.search import SEARCH_OPERATIONS
from roost.dashboard.service import FLEET_RULE, SESSION_RULE, DashboardService
from roost.dashboard.session.guard import RequestGuard
from roost.dashboard.session.login import LOGIN_OPERATIONS
from roost.ledger import LedgerBusy
from roost.placement.options import PlacementOptions
from roost.records import RecordsError
from roost.scheduler.api.app import default_rules as scheduler_rules
from roost.storage import StorageError
from roost.web.app import Kernel
from roost.web.app import create_app as create_web_app
from roost.web.forwarded import through_proxies
from roost.web.operation import OPEN, Operation
from roost.web.policy import ADMIN
from roost.web.request import Request, Response

DASHBOARD_RULES: Final = {FLEET_RULE: ADMIN, SESSION_RULE: "@"}
"""The policy rules as they are without a policy file. Instances and decisions have the rules of the APIs."""

PAGES: Final[tuple[Page, ...]] = (
    OVERVIEW,
    FLEET_MAP,
    HOSTS,
    HOST,
    INSTANCES,
    INSTANCE,
    DECISIONS_PAGE,
    DECISION_PAGE,
    REDECISION_PAGE,
    WHAT_IF_PAGE,
    FLAVORS_PAGE,
    CELLS,
    EVENTS,
    MAINTENANCES,
    MAINTENANCE,
    SERIES,
    *CONFIRMATIONS,
    *INSTANCE_QUESTIONS.values(),
    *MAINTENANCE_QUESTIONS.values(),
)
"""All pages. A new page is one row here."""

OPERATIONS: Final[tuple[Operation, ...]] = (
    *LOGIN_OPERATIONS,
    *ASSET_OPERATIONS,
    *SEARCH_OPERATIONS,
    *ACTION_OPERATIONS,
    *MAP_OPERATIONS,
    *LIVE_OPERATIONS,
    *(page.operation() for page in PAGES),
)


def create_app(
    service: DashboardService, options: PlacementOptions, *, alone: bool = False
) -> falcon.asgi.App:  # type: ignore[type-arg]
    """Return the application of the dashboard. ``alone``: the process serves nothing else, so that the root
    of its address leads to the overview."""
    proxies = options.proxies
    kernel = Kernel(
        service,
        service.sessions,
        service.policy,
        DashboardConventions(),
        unavailable=(LedgerBusy, RecordsError, StorageError),
        request_type=Request if proxies is None else through_proxies(Request, proxies),
        middleware=(RequestGuard(service.options.hosts),),
        body_seconds=options.limits.body_seconds,
    )
    return create_web_app((*OPERATIONS, _ENTRY) if alone else OPERATIONS, kernel)


async def _enter(service: object, req: Request, resp: Response) -> None:
    resp.status = 303
    resp.set_header("location", ROOT)


_ENTRY: Final = Operation("GET", "/", OPEN, _enter, provides=())


def default_rules() -> list[RuleDefault]:
    """Return the rules without a policy file: the dashboard's own, and those of the APIs that it shows."""
    own = [RuleDefault(name, check, scope_types=["project"]) for name, check in DASHBOARD_RULES.items()]
    return [*own, *conductor_api.default_rules(), *scheduler_rules()]

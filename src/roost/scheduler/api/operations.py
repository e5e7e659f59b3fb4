"""The table of the scheduler's operations, their policy rules and paths.

A new operation is one row of `OPERATIONS`, with a rule in `DEFAULT_RULES`. Its path begins with one of
`PATHS`.
"""

from typing import Final

from roost.model.record import Attempt
from roost.model.what_if import WhatIf
from roost.placement.errors import ConcurrentUpdate
from roost.records import RunWithAttempts
from roost.scheduler.api.destinations import (
    WantedAlternate,
    WantedDestinations,
    same_request,
    select_destinations,
    use_alternate,
)
from roost.scheduler.api.dry_runs import (
    ExplainedRequest,
    Supposed,
    ToCheck,
    ToExplain,
    check,
    explain,
    plan_maintenance,
    what_if,
)
from roost.scheduler.api.external import ExternalRequest, OrderedHosts, order_hosts
from roost.scheduler.api.fleet_map import FleetMap, FleetMapQuery, LayoutChanged, show_fleet_map
from roost.scheduler.api.hosts import AmountsUnknown, RankedHostPage, RankedHostsQuery, list_ranked_hosts
from roost.scheduler.api.records import RecordPage, RecordsQuery, list_records, show_record
from roost.scheduler.api.refusals import (
    OF_ALTERNATES,
    OF_RUNS,
    BadSpec,
    PlacementAway,
    PlacementRefuses,
    SchedulerFailed,
)
from roost.scheduler.api.results import EndedAttempt, HasEnded, end_attempt
from roost.scheduler.api.wire.answers import CheckedRequest, ShownDestinations, ShownReplacement
from roost.scheduler.maintenance.live_fleet import WantedPlan
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.web.errors import BadRequest, Forbidden, NotFound, Unavailable
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import PROJECT_READER, Rule
from roost.web.query import Query

SERVICE: Final = "role:admin or role:service"
"""The check string of rules for administrators and services."""

DEFAULT_RULES: Final = {
    "scheduler:select_destinations": SERVICE,
    "scheduler:use_alternate": SERVICE,
    "scheduler:explain": SERVICE,
    "scheduler:check": SERVICE,
    "scheduler:what_if": SERVICE,
    "scheduler:plan_maintenance": SERVICE,
    "scheduler:order": SERVICE,
    "scheduler:results": SERVICE,
    "scheduler:hosts": SERVICE,
    "scheduler:records": f"{PROJECT_READER} or role:service",
    "scheduler:records:all_projects": SERVICE,
}
"""The policy rules that apply without a policy file."""

PATHS: Final = ("/v1/select_destinations", "/v1/use_alternate", "/v1/scheduler", "/v1/nova")
"""The paths of a scheduler: these, and all below them."""


def _rule(verb: str) -> Rule:
    """Return the rule of an operation. Only users who see the records of all projects get details of hosts in
    its response."""
    return Rule(f"scheduler:{verb}", all_projects="scheduler:records:all_projects")


RECORDS: Final = _rule("records")
"""The rule of the records of runs."""

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "POST",
        "/v1/select_destinations",
        _rule("select_destinations"),
        select_destinations,
        body=WantedDestinations,
        takes=(),  # any content type, because curl -d declares its data as a form
        answer=ShownDestinations,
        raises=(*OF_RUNS, ConcurrentUpdate),
        creates=Creation(atomic=False, canonical=same_request),
    ),
    Operation(
        "POST",
        "/v1/use_alternate",
        _rule("use_alternate"),
        use_alternate,
        body=WantedAlternate,
        takes=(),
        answer=ShownReplacement,
        raises=(*OF_ALTERNATES, ConcurrentUpdate),
    ),
    Operation(
        "POST",
        "/v1/scheduler/explain",
        _rule("explain"),
        explain,
        body=ToExplain,
        takes=(),
        answer=ExplainedRequest,
        raises=(BadSpec, SchedulerFailed, Unavailable),
    ),
    Operation(
        "POST",
        "/v1/scheduler/check",
        Rule("scheduler:check"),
        check,
        body=ToCheck,
        takes=(),
        answer=CheckedRequest,
        raises=(BadSpec, SchedulerFailed, PlacementRefuses, PlacementAway),
    ),
    Operation(
        "POST",
        "/v1/scheduler/what-if",
        _rule("what_if"),
        what_if,
        body=Supposed,
        takes=(),
        answer=WhatIf,
        raises=(BadSpec, SchedulerFailed, Unavailable),
    ),
    Operation(
        "POST",
        "/v1/scheduler/plan-maintenance",
        Rule("scheduler:plan_maintenance"),
        plan_maintenance,
        body=WantedPlan,
        takes=(),
        answer=MaintenancePlan,
        raises=(BadSpec, SchedulerFailed, Unavailable),
    ),
    Operation(
        "POST",
        "/v1/nova/external",
        Rule("scheduler:order"),
        order_hosts,
        body=ExternalRequest,
        takes=(),
        answer=OrderedHosts,
        raises=(BadSpec, SchedulerFailed, PlacementRefuses, PlacementAway, Unavailable),
    ),
    Operation(
        "POST",
        "/v1/scheduler/results",
        _rule("results"),
        end_attempt,
        body=EndedAttempt,
        takes=(),
        answer=Attempt,
        raises=(BadRequest, NotFound, HasEnded, Unavailable),
    ),
    Operation(
        "GET",
        "/v1/scheduler/records",
        RECORDS,
        list_records,
        query=Query(RecordsQuery),
        answer=RecordPage,
        raises=(BadRequest, Forbidden),
    ),
    Operation(
        "GET",
        "/v1/scheduler/records/{run}",
        RECORDS,
        show_record,
        answer=RunWithAttempts,
        raises=(NotFound,),
    ),
    Operation(
        "GET",
        "/v1/scheduler/hosts",
        Rule("scheduler:hosts"),
        list_ranked_hosts,
        query=Query(RankedHostsQuery),
        answer=RankedHostPage,
        raises=(AmountsUnknown, Unavailable),
    ),
    Operation(
        "GET",
        "/v1/scheduler/map",
        Rule("scheduler:hosts"),
        show_fleet_map,
        query=Query(FleetMapQuery),
        answer=FleetMap,
        raises=(AmountsUnknown, LayoutChanged, Unavailable),
    ),
)

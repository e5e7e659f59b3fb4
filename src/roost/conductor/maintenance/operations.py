"""The operations of maintenance, their handlers and policy rules."""

import uuid as uuids
from typing import Final, Protocol

from roost.conductor.hosts.registry import HostRegistry
from roost.conductor.hosts.watch import ServiceWatch, check_feature
from roost.conductor.maintenance.guests import wanted_plan
from roost.conductor.maintenance.types import (
    MaintainedHostPage,
    MaintainedHostsQuery,
    MaintenancePage,
    MaintenancesQuery,
    MaintenanceToPlan,
    ShownHostLeftOut,
    ShownMaintenance,
    ShownMaintenancePlan,
    ShownPlannedMove,
    ShownWave,
    WantedMaintenance,
)
from roost.conductor.maintenance.views import MaintenanceViews
from roost.conductor.requester import requester_of
from roost.conductor.super_conductor import SuperConductor
from roost.model.idempotency import KeyedAnswer
from roost.model.maintenance import RUNNING, Maintenance, MaintenanceRefused
from roost.model.service_version import MOVES
from roost.placement.errors import PlacementError
from roost.process.context import Work
from roost.scheduler.errors import BadRequestSpec, SchedulerError
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.kept_answers import Once
from roost.state.api_database.maintenances import (
    begin_maintenance,
    cancel_maintenance,
    finish_host,
    pause_maintenance,
    resume_maintenance,
)
from roost.state.api_database.tables import API
from roost.storage import StorageError
from roost.web.errors import BadRequest, Conflict, NotFound, Unavailable
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import ADMIN, Rule
from roost.web.query import Query
from roost.web.request import Request, Response


class MaintenanceService(Protocol):
    """The part of the conductor's service that the handlers need."""

    @property
    def conductor(self) -> SuperConductor: ...

    @property
    def hosts(self) -> HostRegistry: ...

    @property
    def watch(self) -> ServiceWatch: ...

    @property
    def maintenances(self) -> MaintenanceViews: ...


async def plan_maintenance(service: MaintenanceService, req: Request, resp: Response) -> ShownMaintenancePlan:
    """Plan how hosts are emptied in few groups, each into all the others; nothing is changed.

    Instances move within their cells. The plan is of this moment: what is built or deleted later is not in
    it.
    """
    wanted: MaintenanceToPlan = req.body
    context = service.conductor.context
    cells = [name for name in service.conductor.cells if name != CELL0]
    try:
        asked = await wanted_plan(
            context, wanted.hosts, cells, reserve=wanted.reserve, most_hosts=wanted.most_hosts
        )
        plan = await service.conductor.scheduler.plan_maintenance(asked)
    except BadRequestSpec as error:
        raise BadRequest(str(error)) from error
    except StorageError as error:
        raise Unavailable(f"A cell cannot be asked for its instances: {one_line(error)}") from error
    except (SchedulerError, PlacementError) as error:
        raise Unavailable(f"The scheduler makes no plan: {one_line(error)}") from error
    if plan is None:
        raise Unavailable(
            "The maintenance cannot be planned now: another one is being planned, it takes too long, or the "
            "scheduler has no ledger."
        )
    return _shown(plan)


def _shown(plan: MaintenancePlan) -> ShownMaintenancePlan:
    return ShownMaintenancePlan(
        waves=tuple(
            ShownWave(
                wave.hosts,
                tuple(ShownPlannedMove(each.guest, each.source, each.target) for each in wave.moves),
                wave.unsheltered,
            )
            for wave in plan.waves
        ),
        left_out=tuple(ShownHostLeftOut(each.host, each.reason, each.guest) for each in plan.left_out),
        least_waves=plan.least_waves,
        bound=plan.bound,
        moves=plan.moves,
    )


async def start_maintenance(service: MaintenanceService, req: Request, resp: Response) -> ShownMaintenance:
    """Have hosts emptied in waves, worked on and given back. It is durable when it is answered.

    Each wave is planned when it begins. Its hosts are disabled, their instances move to the targets of the
    plan, or where the scheduler has room; for each host that is empty the hook of the configuration is
    called, and then the host is enabled again.
    """
    wanted: WantedMaintenance = req.body
    check_feature(service.watch, MOVES)
    context = service.conductor.context
    cells = await service.hosts.lookup.cells_of(sorted(set(wanted.hosts)))
    at = context.clock()
    maintenance = Maintenance(
        uuid=str(uuids.uuid4()),
        state=RUNNING,
        by=requester_of(req),
        began=at,
        changed_at=at,
        reserve=wanted.reserve,
        most_hosts=wanted.most_hosts,
        keeps_going=wanted.keep_going,
    )
    shown = service.maintenances.begun(maintenance, len(cells))
    answer = req.keyed(shown)

    def kept(begun: Maintenance | MaintenanceRefused) -> KeyedAnswer | None:
        return answer if isinstance(begun, Maintenance) else None

    owner = service.conductor.holder or None
    begun = await context.write(API, Once(begin_maintenance(maintenance, cells, owner), kept))
    if isinstance(begun, MaintenanceRefused):
        raise Conflict(begun.reason)
    return shown


async def list_maintenances(service: MaintenanceService, req: Request, resp: Response) -> MaintenancePage:
    """List maintenances by page, the newest first, also those that have ended."""
    query: MaintenancesQuery = req.query
    return await service.maintenances.page(query)


async def show_maintenance(
    service: MaintenanceService, req: Request, resp: Response, uuid: str
) -> ShownMaintenance:
    """Show a maintenance, with the numbers of its hosts by state."""
    return await service.maintenances.show(uuid)


async def list_maintained_hosts(
    service: MaintenanceService, req: Request, resp: Response, uuid: str
) -> MaintainedHostPage:
    """List the hosts of a maintenance by page, all or those in some states."""
    query: MaintainedHostsQuery = req.query
    return await service.maintenances.hosts(uuid, query)


async def pause(service: MaintenanceService, req: Request, resp: Response, uuid: str) -> ShownMaintenance:
    """Pause a maintenance: no further move and no call of the hook begins; those under way go on."""
    by = requester_of(req)
    at = service.conductor.context.clock()
    return await _said(service, uuid, pause_maintenance(uuid, f"{by.user_id} has paused it", at, by))


async def resume(service: MaintenanceService, req: Request, resp: Response, uuid: str) -> ShownMaintenance:
    """Let a maintenance that is paused go on."""
    at = service.conductor.context.clock()
    return await _said(service, uuid, resume_maintenance(uuid, at, requester_of(req)))


async def cancel(service: MaintenanceService, req: Request, resp: Response, uuid: str) -> ShownMaintenance:
    """Have a maintenance end: no further wave begins, and the hosts of the last one are given back.

    Calls of the hook that are under way are waited for.
    """
    at = service.conductor.context.clock()
    return await _said(service, uuid, cancel_maintenance(uuid, at, requester_of(req)))


async def finish(
    service: MaintenanceService, req: Request, resp: Response, uuid: str, host: str
) -> ShownMaintenance:
    """Say that the work on a host that is empty is done, so that it is given back.

    A call of the hook for it that is under way is stopped.
    """
    at = service.conductor.context.clock()
    return await _said(service, uuid, finish_host(uuid, host, at, requester_of(req)))


async def _said(
    service: MaintenanceService, uuid: str, word: Work[Maintenance | MaintenanceRefused | None]
) -> ShownMaintenance:
    """Write an operator's word on a maintenance, and show it. Raises `NotFound`, `Conflict`."""
    done = await service.conductor.context.write(API, word)
    if done is None:
        raise NotFound(f"no maintenance {uuid}")
    if isinstance(done, MaintenanceRefused):
        raise Conflict(done.reason)
    return await service.maintenances.show(uuid)


PATH: Final = "/v1/maintenances"
_ONE: Final = f"{PATH}/{{uuid}}"

MAINTENANCE_RULES: Final = {
    f"conductor:maintenances:{verb}": ADMIN for verb in ("plan", "create", "list", "show", "update")
}
"""The policy rules as they are without a policy file."""


def _rule(verb: str) -> Rule:
    return Rule(f"conductor:maintenances:{verb}")


MAINTENANCE_OPERATIONS: Final = (
    Operation(
        "POST",
        f"{PATH}/plan",
        _rule("plan"),
        plan_maintenance,
        body=MaintenanceToPlan,
        takes=(),  # curl -d says that its data is a form
        answer=ShownMaintenancePlan,
        raises=(Unavailable,),
    ),
    Operation(
        "POST",
        PATH,
        _rule("create"),
        start_maintenance,
        body=WantedMaintenance,
        takes=(),
        answer=ShownMaintenance,
        status=202,
        raises=(Conflict,),
        creates=Creation(),
    ),
    Operation(
        "GET",
        PATH,
        _rule("list"),
        list_maintenances,
        query=Query(MaintenancesQuery),
        answer=MaintenancePage,
    ),
    Operation("GET", _ONE, _rule("show"), show_maintenance, answer=ShownMaintenance),
    Operation(
        "GET",
        f"{_ONE}/hosts",
        _rule("show"),
        list_maintained_hosts,
        query=Query(MaintainedHostsQuery),
        answer=MaintainedHostPage,
    ),
    *(
        Operation(
            "POST",
            f"{_ONE}/{verb}",
            _rule("update"),
            handler,
            answer=ShownMaintenance,
            status=202,
            raises=(Conflict,),
        )
        for verb, handler in (("pause", pause), ("resume", resume), ("cancel", cancel))
    ),
    Operation(
        "POST",
        f"{_ONE}/hosts/{{host}}/done",
        _rule("update"),
        finish,
        answer=ShownMaintenance,
        status=202,
        raises=(Conflict,),
    ),
)

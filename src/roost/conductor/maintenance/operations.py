"""The operations of maintenance, their handlers and policy rules."""

from typing import Final, Protocol

from roost.conductor.hosts.registry import HostRegistry
from roost.conductor.hosts.watch import ServiceWatch
from roost.conductor.maintenance.guests import wanted_plan
from roost.conductor.maintenance.types import (
    MaintenanceToPlan,
    ShownHostLeftOut,
    ShownMaintenancePlan,
    ShownPlannedMove,
    ShownWave,
)
from roost.conductor.super_conductor import SuperConductor
from roost.placement.errors import PlacementError
from roost.scheduler.errors import BadRequestSpec, SchedulerError
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.cell_mappings import CELL0
from roost.storage import StorageError
from roost.web.errors import BadRequest, Unavailable
from roost.web.operation import Operation
from roost.web.policy import ADMIN, Rule
from roost.web.request import Request, Response


class MaintenanceService(Protocol):
    """The part of the conductor's service that the handlers need."""

    @property
    def conductor(self) -> SuperConductor: ...

    @property
    def hosts(self) -> HostRegistry: ...

    @property
    def watch(self) -> ServiceWatch: ...


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


PATH: Final = "/v1/maintenances"

MAINTENANCE_RULES: Final = {"conductor:maintenances:plan": ADMIN}
"""The policy rules as they are without a policy file."""

MAINTENANCE_OPERATIONS: Final = (
    Operation(
        "POST",
        f"{PATH}/plan",
        Rule("conductor:maintenances:plan"),
        plan_maintenance,
        body=MaintenanceToPlan,
        takes=(),  # curl -d says that its data is a form
        answer=ShownMaintenancePlan,
        raises=(Unavailable,),
    ),
)

"""A decision made again without each of its conditions and weighers."""

import msgspec

from roost.dashboard.service import DashboardService
from roost.dashboard.views.decision import DecisionView, decision_of
from roost.scheduler.api.records import record_of
from roost.scheduler.replay import NotReproducible
from roost.scheduler.replay.counterfactuals import Redecided
from roost.web.policy import ALL_PROJECTS
from roost.web.request import Request

NO_LEDGER = (
    "placement is reached over HTTP, or there is no API database: roost replay-decision makes it again"
)


class RedecisionView(msgspec.Struct, frozen=True, kw_only=True):
    """A decision made again. ``impossible``: why it cannot be."""

    decision: DecisionView
    made: Redecided | None = None
    impossible: str | None = None


async def redecision_view(service: DashboardService, req: Request, run: str) -> RedecisionView:
    """Return a decision made again. Raises `NotFound`, `Unavailable`."""
    record = await record_of(service.records, run, ALL_PROJECTS)
    view = decision_of(record, service.table, of_project=False)
    if service.redecisions is None:
        return RedecisionView(decision=view, impossible=NO_LEDGER)
    try:
        return RedecisionView(decision=view, made=await service.redecisions.again(record))
    except NotReproducible as error:
        return RedecisionView(decision=view, impossible=str(error))

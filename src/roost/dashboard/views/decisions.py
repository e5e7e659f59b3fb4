"""The list of decisions: runs of the scheduler, searched and paged by the records."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from roost.dashboard.page import PageQuery
from roost.dashboard.service import DashboardService
from roost.dashboard.views.moments import read_moment
from roost.dashboard.views.outcome import DecisionOutcome, RecordedHost, hosts_of, outcome_of
from roost.model.visibility import shown_whole, visible
from roost.model.vocabulary import MAX_NAME
from roost.records import RunWithAttempts
from roost.scheduler.api.records import RecordsQuery, record_page
from roost.web.query import Uuid
from roost.web.request import Request

_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
_Time = Annotated[str, Meta(max_length=40)]


class DecisionsQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of the list of decisions; see `RecordsQuery`. Times are as people write them."""

    OF_OPERATORS: ClassVar = ("host",)

    request_id: _Name | None = None
    instance: Uuid | None = None
    host: _Name | None = None
    project_id: _Name | None = None
    user_id: _Name | None = None
    result: Literal["pending", "built", "refused", "failed", "abandoned"] | None = None
    refused: bool = False
    since: _Time | None = None
    until: _Time | None = None
    marker: Uuid | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class DecisionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A decision in a list. ``seconds``: the time that it took. ``hosts``: the chosen ones, if seen."""

    run: str
    request_id: str
    project_id: str
    user_id: str
    operation: str
    flavor: str
    instances: int
    at: float
    seconds: float
    outcome: DecisionOutcome
    reason: str | None
    hosts: tuple[RecordedHost, ...]


class DecisionsView(msgspec.Struct, frozen=True, kw_only=True):
    """A page of decisions, the last one first. ``next``: the marker of the next page, None on the last."""

    decisions: tuple[DecisionRow, ...]
    next: str | None
    asked: DecisionsQuery


# The rows are made of what the viewer may see of each record.
shown_whole(DecisionsView)


async def decisions_view(service: DashboardService, req: Request) -> DecisionsView:
    """Return a page of the decisions that the viewer may see. Raises: `BadRequest`, `Forbidden`."""
    asked: DecisionsQuery = req.query
    query = RecordsQuery(
        limit=asked.limit,
        marker=asked.marker,
        request_id=asked.request_id,
        instance=asked.instance,
        host=asked.host,
        result=asked.result,
        project_id=asked.project_id,
        user_id=asked.user_id,
        since=None if asked.since is None else read_moment(asked.since),
        until=None if asked.until is None else read_moment(asked.until),
        refused=asked.refused,
    )
    page = await record_page(service.records, query, req.projects)
    rows = tuple(decision_row(visible(each, req.viewer)) for each in page.records)
    return DecisionsView(decisions=rows, next=page.next, asked=asked)


def decision_row(record: RunWithAttempts) -> DecisionRow:
    """Return a decision as a row, of the part of its record that is seen."""
    run = record.run
    flavor = run.spec.get("flavor")
    return DecisionRow(
        run=run.id,
        request_id=run.request_id,
        project_id=run.project_id,
        user_id=run.user_id,
        operation=str(run.spec.get("operation", "create")),
        flavor=str(flavor.get("name", "")) if isinstance(flavor, dict) else "",
        instances=len(run.instances),
        at=run.started_at,
        seconds=run.finished_at - run.started_at,
        outcome=outcome_of(record),
        reason=run.refusal if run.reasons is None else run.reasons.sentence,
        hosts=hosts_of(record),
    )

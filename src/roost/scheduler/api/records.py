"""``/v1/scheduler/records``: the history of runs and attempts."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from roost.model.visibility import seen, seen_by_project
from roost.model.vocabulary import MAX_NAME
from roost.records import RecordQueue, RunWithAttempts, Search, SearchableRecords, UnknownRun
from roost.scheduler.api.service import SchedulerService
from roost.web.errors import BadRequest, Forbidden, NotFound
from roost.web.policy import Projects
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE, Moment, Uuid
from roost.web.request import Request, Response

OWN_SECONDS = 1.0
"""Most seconds that a search waits until the records of this process are written."""

_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00]*\Z")]


class RecordsQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of a list of runs. A run is listed if it meets all criteria."""

    OF_OPERATORS: ClassVar = ("host",)

    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Runs on a page.")] = DEFAULT_PAGE
    marker: Annotated[
        Uuid | None, Meta(description="`next` of the page before: the page begins after this run.")
    ] = None
    request_id: Annotated[
        _Name | None, Meta(description="The id of the request, or the one that its client gave it.")
    ] = None
    instance: Annotated[Uuid | None, Meta(description="An instance that the run was asked to place.")] = None
    host: Annotated[_Name | None, Meta(description="A host of an attempt; for administrators.")] = None
    result: Annotated[
        Literal["pending", "built", "refused", "failed", "abandoned"] | None,
        Meta(description="The result of an attempt, on `host` if it is given."),
    ] = None
    project_id: Annotated[_Name | None, Meta(description="The project of the request.")] = None
    user_id: Annotated[_Name | None, Meta(description="The user of the request.")] = None
    since: Annotated[
        Moment | None,
        Meta(description="Runs of this time or a later one, in seconds since the epoch."),
    ] = None
    until: Annotated[
        Moment | None, Meta(description="Runs that started before this time, in seconds since the epoch.")
    ] = None
    refused: Annotated[bool, Meta(description="Only runs that placed too few instances.")] = False


class RecordPage(msgspec.Struct):
    """Runs with their attempts, the last one first. `next`: the marker of the next page, null on the last."""

    records: list[RunWithAttempts]
    next: str | None


@seen_by_project(RecordPage)
def _of_project(page: RecordPage) -> RecordPage:
    return RecordPage([seen(each) for each in page.records], page.next)


async def list_records(service: SchedulerService, req: Request, resp: Response) -> RecordPage:
    """List runs of the scheduler with their attempts by page, the last one first.

    Administrators and services see all runs. A project sees its own runs, without hosts and numbers of hosts.
    """
    return await record_page(service.records, req.query, req.projects)


async def show_record(service: SchedulerService, req: Request, resp: Response, run: str) -> RunWithAttempts:
    """Show a run of the scheduler with its attempts; a project sees it without hosts, as in the list."""
    return await record_of(service.records, run, req.projects)


async def record_page(records: RecordQueue, query: RecordsQuery, projects: Projects) -> RecordPage:
    """Return a page of the runs that a query asks for, of the projects that a request may reach.

    Raises:
        Forbidden: the query is for another project.
        BadRequest: the records cannot be searched by these criteria.
    """
    own = query.project_id
    if not projects.all:
        own = projects.project_id
        if query.project_id not in (None, own):
            raise Forbidden("Policy does not allow to read the records of other projects.")
    search = Search(
        request_id=query.request_id,
        instance=query.instance,
        host=query.host,
        result=query.result,
        project_id=own,
        user_id=query.user_id,
        since=query.since,
        until=query.until,
        refused=query.refused,
        before=query.marker,
    )
    found = await find(records, search, query.limit + 1)
    page = found[: query.limit]
    following = page[-1].run.id if len(found) > query.limit else None
    return RecordPage(page, following)


async def record_of(records: RecordQueue, run: str, projects: Projects) -> RunWithAttempts:
    """Return a run with its attempts. Raises `NotFound`: it is not recorded, or of a project out of reach."""
    found = await find(records, Search(run=run), 1)
    if not found or not projects.include(found[0].run.project_id):
        raise NotFound(f"no run {run} is recorded")
    return found[0]


async def find(records: RecordQueue, search: Search, limit: int) -> list[RunWithAttempts]:
    """Find runs in the records, including runs that this process has just made.

    Raises:
        BadRequest: the records cannot be searched by these criteria.
    """
    await records.flush(OWN_SECONDS)
    backend = records.backend
    if isinstance(backend, SearchableRecords):
        try:
            return await backend.find(search, limit)
        except UnknownRun as error:
            raise BadRequest(f"marker: {error}") from error
    if search not in (Search(), Search(refused=True)):
        raise BadRequest("the records of this service cannot be searched: only the last of them can be read")
    return await backend.last(limit, search.refused)

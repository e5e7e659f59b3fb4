"""The list of instances: searched and paged by the server."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, get_args

import msgspec
from msgspec import Meta

from roost.conductor.instances.types import InstancePage, InstancesQuery
from roost.dashboard.page import PageQuery
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.views.absence import of_cloud
from roost.dashboard.views.cloud_cells import instances_by_state, seen_cells
from roost.model.visibility import seen, seen_by_project
from roost.web.errors import Forbidden
from roost.web.query import Uuid
from roost.web.request import Request

ON_A_PAGE = 50
"""Instances on a page."""

InstanceState = Literal[
    "scheduling",
    "assigned",
    "starting",
    "active",
    "lost",
    "powering-off",
    "stopped",
    "powering-on",
    "rebuilding",
    "rebuilding-stopped",
    "shelving",
    "offloaded",
    "shelved",
    "unshelving",
    "failed",
    "abandoned",
    "error",
    "deleting",
    "destroyed",
    "unknown",
]
INSTANCE_STATES: tuple[str, ...] = get_args(InstanceState)

SearchedBy = Literal["name", "uuid", "request"]
"""The field that a text is searched in."""

Text = Annotated[str, Meta(max_length=255)]

_PREFIX = re.compile(r"[0-9a-fA-F-]{4,36}")
_REQUESTS = re.compile(r"(req-[0-9A-Za-z-]+,?)+")


class InstanceListQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of the list.

    ``search``: a name, the beginning of a uuid, or a request; ``by``: the field that it is searched in.
    ``marker``: the page begins after this uuid.
    """

    OF_OPERATORS: ClassVar = ("cell", "host")

    search: Text | None = None
    by: SearchedBy | None = None
    state: InstanceState | None = None
    host: Text | None = None
    cell: Text | None = None
    project: Text | None = None
    marker: Uuid | None = None


class InstancesView(msgspec.Struct, frozen=True, kw_only=True):
    """A page of instances. ``at``: seconds since the epoch.

    ``by``: the field that ``search`` was found in, None without a search. ``total``: instances in cells by
    state, of all projects; empty for a project. ``cells``: the names of all cells. ``marker``: of this page.
    """

    at: float
    page: InstancePage
    search: str | None = None
    by: SearchedBy | None = None
    state: str | None = None
    host: str | None = None
    cell: str | None = None
    project: str | None = None
    marker: str | None = None
    total: dict[str, int] = {}
    cells: tuple[str, ...] = ()
    all_projects: bool = False


@of_cloud
async def instances_view(service: DashboardService, cloud: CloudReads, req: Request) -> InstancesView:
    """Return a page of the instances that the viewer may see."""
    query: InstanceListQuery = req.query
    project = None if req.projects.all else req.projects.project_id
    if query.project is not None:
        if not req.projects.include(query.project):
            raise Forbidden("The instances of this project are not for you.")
        project = query.project
    page, by, search = await _found(cloud, query, project)
    shown: dict[str, Any] = {}
    if req.projects.all:
        cells = await seen_cells(service, cloud)
        names = tuple(each.mapping.name for each in cells)
        shown = {"total": instances_by_state(cells), "cells": names, "all_projects": True}
    return InstancesView(
        at=service.clock(),
        page=page,
        search=search,
        by=by if search else None,
        state=query.state,
        host=query.host,
        cell=query.cell,
        project=query.project,
        marker=query.marker,
        **shown,
    )


async def _found(
    cloud: CloudReads, query: InstanceListQuery, project: str | None
) -> tuple[InstancePage, SearchedBy | None, str | None]:
    """Return the page, the field that something was found in, and the text that was found there."""
    page = InstancePage([], None, [])
    tried: tuple[SearchedBy | None, str | None] = query.by, query.search
    for tried in _tries(query):
        page = await cloud.instances.page(_asked(query, *tried), project)
        if page.instances:
            return page, *tried
    if query.search is None or tried[0] != "name":
        return page, *tried
    # Several instances of one request are named as it was asked for, each with a number.
    first = await cloud.instances.page(InstancesQuery(name=f"{query.search}-1", limit=1), project)
    if not first.instances:
        return page, *tried
    request = first.instances[0].request_id
    return await cloud.instances.page(_asked(query, "request", request), project), "request", request


def _tries(query: InstanceListQuery) -> Iterator[tuple[SearchedBy | None, str | None]]:
    """The fields to search in, one after the other until something is found, and the text."""
    text = query.search
    if query.by is not None or text is None:
        yield query.by, text
    elif _REQUESTS.fullmatch(text):
        yield "request", text
    else:
        if _PREFIX.fullmatch(text):
            yield "uuid", text
        yield "name", text


def _asked(query: InstanceListQuery, by: SearchedBy | None, text: str | None) -> InstancesQuery:
    sought: dict[str, Any] = {}
    if text is not None:
        if by == "uuid":
            # A text that is the beginning of no uuid finds nothing.
            sought = {"uuid_prefix": text if _PREFIX.fullmatch(text) else "-"}
        else:
            sought = {"name": text} if by == "name" else {"request_id": text}
    return InstancesQuery(
        state=query.state,
        host=query.host,
        cell=query.cell,
        limit=ON_A_PAGE,
        marker=query.marker,
        **sought,
    )


def present_states(total: dict[str, int]) -> Sequence[str]:
    """Return the states that some instances are in, in their usual order."""
    return [each for each in INSTANCE_STATES if total.get(each)]


@seen_by_project(InstancesView)
def _instances(view: InstancesView) -> InstancesView:
    """Return the page as its project sees it: without cells and counts of others."""
    return msgspec.structs.replace(view, page=seen(view.page), cells=(), total={}, all_projects=False)

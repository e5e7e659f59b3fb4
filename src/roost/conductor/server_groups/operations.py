"""The operations of server groups, their handlers and policy rules."""

import uuid as uuids
from typing import Final, Protocol

from roost.conductor.requester import owner_of
from roost.conductor.server_groups.types import (
    ServerGroupPage,
    ServerGroupsQuery,
    ShownServerGroup,
    WantedServerGroup,
    listed,
    shown,
)
from roost.placement.interface import Placement
from roost.state.api_database.server_groups import NoSuchServerGroup, ServerGroups, StoredServerGroup
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import ADMIN, PROJECT_READER, PROJECT_WRITER, Rule
from roost.web.query import Query
from roost.web.request import Request, Response


class ServerGroupService(Protocol):
    """The part of the conductor's service that the handlers need."""

    @property
    def groups(self) -> ServerGroups: ...

    @property
    def placement(self) -> Placement: ...


async def create_server_group(service: ServerGroupService, req: Request, resp: Response) -> ShownServerGroup:
    """Make a server group without members."""
    wanted: WantedServerGroup = req.body
    project_id, user_id = owner_of(req)
    group = StoredServerGroup(
        uuid=str(uuids.uuid4()),
        name=wanted.name,
        project_id=project_id,
        user_id=user_id,
        policy=wanted.policy,
        max_server_per_host=wanted.rules.max_server_per_host or 1,
    )
    made = shown(group, [])
    await service.groups.create(group, req.keyed(made))
    return made


async def list_server_groups(service: ServerGroupService, req: Request, resp: Response) -> ServerGroupPage:
    """List server groups by page, without their members.

    The list has the groups of the token's project. `project_id` names another project and `all_projects` asks
    for all of them, which is for administrators.
    """
    query: ServerGroupsQuery = req.query
    project_id = None if req.projects.all else req.projects.project_id or ""
    found = await service.groups.page(query.limit + 1, query.marker or "", project_id)
    page = [listed(group) for group in found[: query.limit]]
    return ServerGroupPage(page, page[-1].uuid if len(found) > query.limit else None)


async def show_server_group(
    service: ServerGroupService, req: Request, resp: Response, uuid: str
) -> ShownServerGroup:
    """Show a server group with its members: the instances that have a claim as members of it."""
    group = await _find(service, req, uuid)
    members = await service.placement.group_members(uuid)
    if members is None:  # A placement service that knows no groups.
        return shown(group, list(await service.groups.members(uuid)))
    return shown(group, list(await service.groups.instances_of(members)))


async def delete_server_group(service: ServerGroupService, req: Request, resp: Response, uuid: str) -> None:
    """Delete a server group. Its members stay where they are, and no request can name it any more."""
    await _find(service, req, uuid)
    await service.groups.delete(uuid)


async def _find(service: ServerGroupService, req: Request, uuid: str) -> StoredServerGroup:
    """Return a group of a project that the request may reach. Raises `NoSuchServerGroup` for all others."""
    group = await service.groups.known(uuid)
    if group is None or not req.projects.include(group.project_id):
        raise NoSuchServerGroup(uuid)
    return group


PATH: Final = "/v1/server-groups"
_ONE: Final = f"{PATH}/{{uuid}}"
_ALL_PROJECTS: Final = "conductor:server_groups:all_projects"

SERVER_GROUP_RULES: Final = {
    "conductor:server_groups:create": PROJECT_WRITER,
    "conductor:server_groups:list": PROJECT_READER,
    "conductor:server_groups:show": PROJECT_READER,
    "conductor:server_groups:delete": PROJECT_WRITER,
    _ALL_PROJECTS: ADMIN,
}
"""The policy rules as they are without a policy file. Source: Nova's defaults."""


def _rule(verb: str) -> Rule:
    return Rule(f"conductor:server_groups:{verb}", all_projects=_ALL_PROJECTS)


SERVER_GROUP_OPERATIONS: Final = (
    Operation(
        "POST",
        PATH,
        _rule("create"),
        create_server_group,
        body=WantedServerGroup,
        takes=(),  # curl -d says that its data is a form
        answer=ShownServerGroup,
        status=201,
        creates=Creation(),
    ),
    Operation(
        "GET", PATH, _rule("list"), list_server_groups, query=Query(ServerGroupsQuery), answer=ServerGroupPage
    ),
    Operation("GET", _ONE, _rule("show"), show_server_group, answer=ShownServerGroup),
    Operation("DELETE", _ONE, _rule("delete"), delete_server_group, status=204, provides=()),
)

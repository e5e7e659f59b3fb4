"""The operations of server groups, and their policy rules."""

from typing import Final

from roost.conductor.server_groups.handlers import (
    create_server_group,
    delete_server_group,
    list_server_groups,
    show_server_group,
)
from roost.conductor.server_groups.types import (
    ServerGroupPage,
    ServerGroupsQuery,
    ShownServerGroup,
    WantedServerGroup,
)
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import ADMIN, PROJECT_READER, PROJECT_WRITER, Rule
from roost.web.query import Query

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

"""Server groups as bodies and queries of HTTP requests and responses."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.allocation import ANTI_AFFINITY, GroupPolicy
from roost.model.names import lookalike
from roost.model.text import is_storable
from roost.model.visibility import shown_whole
from roost.model.vocabulary import MAX_INT, MAX_NAME
from roost.state.api_database.server_groups import StoredServerGroup
from roost.web.policy import OfProjects
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE, Uuid

_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


class GroupRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The rules of a server group: the members that a host may have at most, for `anti-affinity` alone."""

    max_server_per_host: Annotated[int, Meta(ge=1, le=MAX_INT)] | None = None


class WantedServerGroup(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a server group."""

    name: _Name
    policy: GroupPolicy
    rules: GroupRules = GroupRules()

    def __post_init__(self) -> None:
        if not is_storable(self.name, MAX_NAME) or not self.name.isprintable():
            raise ValueError(f"the name {self.name!r} has characters that are not printable")
        if (why := lookalike(self.name)) is not None:
            raise ValueError(f"the name {self.name!a} {why}")
        most = self.rules.max_server_per_host
        if most is not None and self.policy != ANTI_AFFINITY:
            raise ValueError(f"max_server_per_host {most} is a rule of {ANTI_AFFINITY}, not of {self.policy}")


class ServerGroupsQuery(OfProjects, forbid_unknown_fields=True):
    """The query of a list of server groups."""

    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Server groups on a page.")] = DEFAULT_PAGE
    marker: Annotated[
        Uuid | None, Meta(description="`next` of the page before: the page begins after this uuid.")
    ] = None


class ListedServerGroup(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A server group without its members."""

    uuid: str
    name: str
    policy: str
    rules: GroupRules
    project_id: str
    user_id: str


class ShownServerGroup(ListedServerGroup, forbid_unknown_fields=True, kw_only=True):
    """A server group with its members: the uuids of the instances that have a claim as members."""

    members: list[str]


class ServerGroupPage(msgspec.Struct, forbid_unknown_fields=True):
    """Server groups in order of their uuids. ``next``: the marker of the next page, null on the last one."""

    server_groups: list[ListedServerGroup]
    next: str | None


shown_whole(ServerGroupPage, ShownServerGroup)


def listed(group: StoredServerGroup) -> ListedServerGroup:
    """Return a group as an entry of a list."""
    most = group.max_server_per_host if group.policy == ANTI_AFFINITY else None
    return ListedServerGroup(
        uuid=group.uuid,
        name=group.name,
        policy=group.policy,
        rules=GroupRules(most),
        project_id=group.project_id,
        user_id=group.user_id,
    )


def shown(group: StoredServerGroup, members: list[str]) -> ShownServerGroup:
    """Return a group with its members."""
    return ShownServerGroup(**msgspec.structs.asdict(listed(group)), members=members)

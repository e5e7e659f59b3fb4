"""Who a request is from, as policies see it."""

from collections.abc import Mapping
from typing import Any

import msgspec


class Identity(msgspec.Struct, frozen=True, cache_hash=True):
    """A user, with the scope and the roles that a token proves.

    The names are those that policy files use. Of ``project_id``, ``domain_id`` and ``system_scope`` one is
    there, as the token is scoped. ``service_...`` is the service that asks on behalf of the user, if it said
    so with a token of its own.
    """

    user_id: str
    project_id: str | None = None
    roles: tuple[str, ...] = ()
    domain_id: str | None = None
    system_scope: str | None = None
    user_domain_id: str | None = None
    project_domain_id: str | None = None
    is_admin_project: bool = True
    service_user_id: str | None = None
    service_user_domain_id: str | None = None
    service_project_id: str | None = None
    service_project_domain_id: str | None = None
    service_roles: tuple[str, ...] = ()

    def credentials(self) -> dict[str, Any]:
        """What rules of a policy are checked against."""
        found = msgspec.structs.asdict(self)
        found["roles"] = list(self.roles)
        found["service_roles"] = list(self.service_roles)
        return found


NOBODY = Identity("")


READ_HEADERS = (
    "x-user-id", "x-user", "x-project-id", "x-tenant-id", "x-roles", "x-role", "x-domain-id",
    "openstack-system-scope", "x-user-domain-id", "x-project-domain-id", "x-is-admin-project",
    "x-service-user-id", "x-service-user-domain-id", "x-service-project-id", "x-service-project-domain-id",
    "x-service-roles",
)  # fmt: skip
"""The headers that `read_identity` looks at."""


def read_identity(headers: Mapping[str, str]) -> Identity | None:
    """The identity in the headers that OpenStack's middlewares set (lower-case names), None without a user.

    Whoever calls this must have made sure that the headers are true.
    """
    get = headers.get
    user = get("x-user-id", get("x-user"))
    if user is None:
        return None
    return Identity(
        user_id=user,
        project_id=get("x-project-id", get("x-tenant-id")),
        roles=_names(get("x-roles", get("x-role"))),
        domain_id=get("x-domain-id"),
        system_scope=get("openstack-system-scope"),
        user_domain_id=get("x-user-domain-id"),
        project_domain_id=get("x-project-domain-id"),
        is_admin_project=get("x-is-admin-project", "true").lower() == "true",
        service_user_id=get("x-service-user-id"),
        service_user_domain_id=get("x-service-user-domain-id"),
        service_project_id=get("x-service-project-id"),
        service_project_domain_id=get("x-service-project-domain-id"),
        service_roles=_names(get("x-service-roles")),
    )


def _names(listed: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(",")) if listed else ()

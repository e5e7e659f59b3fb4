"""The user, project and roles of a request, as policy rules see them, and the interface that finds them.

AuthError
└── IdentityUnavailable  the identity service cannot validate tokens now
"""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec


class Identity(msgspec.Struct, frozen=True, cache_hash=True):
    """A user, with the scope and the roles that a token proves.

    The attributes have the names that policy files use. The token's scope sets one of ``project_id``,
    ``domain_id`` and ``system_scope``. The attributes ``service_...`` describe the service that sends the
    request for the user, if the request has an X-Service-Token.
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
        """Return the credentials against which oslo.policy checks a rule."""
        found = msgspec.structs.asdict(self)
        found["roles"] = list(self.roles)
        found["service_roles"] = list(self.service_roles)
        return found


NOBODY = Identity("")
"""The identity of a request that is not authenticated."""


READ_HEADERS = (
    "x-user-id", "x-user", "x-project-id", "x-tenant-id", "x-roles", "x-role", "x-domain-id",
    "openstack-system-scope", "x-user-domain-id", "x-project-domain-id", "x-is-admin-project",
    "x-service-user-id", "x-service-user-domain-id", "x-service-project-id", "x-service-project-domain-id",
    "x-service-roles",
)  # fmt: skip
"""The headers that `read_identity` reads."""


def read_identity(headers: Mapping[str, str]) -> Identity | None:
    """Read the identity from the headers that OpenStack's middlewares set. Returns None without a user.

    Header names are lower-case. The caller guarantees that no client has set these headers.
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


class AuthError(Exception):
    """The identity of a request cannot be found."""


class IdentityUnavailable(AuthError):
    """The identity service is down or slow, or it does not accept the credentials of this service."""


class Authenticator(Protocol):
    """Finds the identity of a request."""

    @property
    def challenge(self) -> str | None:
        """The value of the header WWW-Authenticate in a 401; None if no service issues tokens."""

    async def identify(
        self, headers: Mapping[str, str], method: str = "GET", path: str = "/"
    ) -> Identity | None:
        """Return the identity that the tokens in the headers prove, None if they prove none.

        Args:
            headers: The request's headers, with lower-case names.
            method: The request's method.
            path: The request's whole path, with the prefix under which the service is mounted.

        Raises:
            IdentityUnavailable: The identity service cannot validate tokens now.
        """

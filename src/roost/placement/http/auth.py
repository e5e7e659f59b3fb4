"""Who asks: from a token to an identity.

One authenticator for each value of ``[api] auth_strategy``.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec


class Identity(msgspec.Struct, frozen=True):
    """The user behind a request. ``project_id`` is None for a token of another scope."""

    user_id: str
    project_id: str | None = None
    roles: frozenset[str] = frozenset()


NOBODY = Identity("")


class Authenticator(Protocol):
    """Finds out who sent a request."""

    async def identify(self, headers: Mapping[str, str]) -> Identity | None:
        """The identity that the headers (lower-case names) prove, None if they prove none."""


class NoAuth:
    """``noauth2``, for development: the token is ``user[:project]`` and believed.

    X-Project-Id names another project. Roles are those of X-Roles; without it the user ``admin`` has the
    role admin, others none.
    """

    async def identify(self, headers: Mapping[str, str]) -> Identity | None:
        token = headers.get("x-auth-token")
        if token is None:
            return None
        user, _, project = token.partition(":")
        named = headers.get("x-roles")
        roles = named.split(",") if named is not None else ["admin"] if user == "admin" else []
        system = headers.get("openstack-system-scope")
        named_project = headers.get("x-project-id") or project or user
        return Identity(user, None if system else named_project, frozenset(roles))

"""The authenticator ``noauth2``, for development: it believes every token."""

from collections.abc import Mapping
from functools import lru_cache

from roost.web.auth.identity import READ_HEADERS, Identity, read_identity

_TOKEN = "x-auth-token"
_READ = (_TOKEN, *READ_HEADERS)
_CACHED_IDENTITIES = 1_000
"""Identities that are cached at most, because a client sends the same headers with every request."""


class NoAuth:
    """Believes tokens of the form ``user[:project]``. Without a project, the project has the user's name.

    X-Roles names the roles. Without it, the user ``admin`` has the role admin and other users have none. All
    other headers that Keystone's middleware sets are believed as the client sends them.

    Source: ``noauth2`` of openstack-placement 16.0.0.
    """

    challenge = None

    async def identify(
        self, headers: Mapping[str, str], method: str = "GET", path: str = "/"
    ) -> Identity | None:
        return _identity(tuple(map(headers.get, _READ)))


@lru_cache(_CACHED_IDENTITIES)
def _identity(values: tuple[str | None, ...]) -> Identity | None:
    headers = {name: value for name, value in zip(_READ, values, strict=True) if value is not None}
    token = headers.get(_TOKEN)
    if token is None:
        return None
    user, _, project = token.partition(":")
    believed = {"x-roles": "admin" if user == "admin" else "", **headers, "x-user-id": user}
    if not believed.get("openstack-system-scope"):
        believed["x-tenant-id"] = project or user
    return read_identity(believed)

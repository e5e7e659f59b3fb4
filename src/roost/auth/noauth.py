"""``noauth2``, for development: every token is believed."""

from collections.abc import Mapping
from functools import lru_cache

from roost.auth.identity import READ_HEADERS, Identity, read_identity

_TOKEN = "x-auth-token"
_READ = (_TOKEN, *READ_HEADERS)
_REMEMBERED = 1_000
"""Identities; a client sends the same headers again and again."""


class NoAuth:
    """The token is ``user[:project]``; without a project the user's name is the project's too.

    X-Roles gives the roles; without it the user ``admin`` has the role admin, others none. The other
    headers that Keystone's middleware would set are believed as they are sent.
    """

    challenge = None

    async def identify(
        self, headers: Mapping[str, str], method: str = "GET", path: str = "/"
    ) -> Identity | None:
        return _identity(tuple([headers.get(name) for name in _READ]))


@lru_cache(_REMEMBERED)
def _identity(values: tuple[str | None, ...]) -> Identity | None:
    headers = {name: value for name, value in zip(_READ, values, strict=True) if value is not None}
    token = headers.get(_TOKEN)
    if token is None:
        return None
    user, _, project = token.partition(":")
    said = {"x-roles": "admin" if user == "admin" else "", **headers, "x-user-id": user}
    if not said.get("openstack-system-scope"):
        said["x-tenant-id"] = project or user
    return read_identity(said)

"""The ways to log in, by how the services check tokens."""

from typing import NamedTuple, Protocol

from roost.dashboard.session.one_time import OneTimeToken


class IssuedToken(NamedTuple):
    """A token that Keystone has issued for a user. ``ends``: seconds since the epoch."""

    token: str
    user: str
    ends: float


class PasswordCredentials(NamedTuple):
    """Name and password of a user, and the project that the token is for."""

    user: str
    password: str
    user_domain: str
    project: str
    project_domain: str


class PasswordLogin(Protocol):
    """Gets and revokes tokens at Keystone."""

    async def issue(self, credentials: PasswordCredentials) -> IssuedToken | None:
        """Return a token; None if Keystone refuses the credentials.

        Raises `roost.web.auth.IdentityUnavailable`.
        """

    async def revoke(self, token: str) -> None:
        """Revoke a token. Raises `roost.web.auth.IdentityUnavailable`."""


class LoginMethods(NamedTuple):
    """The ways to log in.

    ``once``: by the address that was printed, for a service without authentication. ``password``: by name and
    password at Keystone; None: by a token alone.
    """

    once: OneTimeToken | None = None
    password: PasswordLogin | None = None

"""Credentials of this process for its requests to another service: its URL, and a token for it."""

from typing import NamedTuple, Protocol


class Access(NamedTuple):
    """The URL of a service, and a token for it; None if the service needs no token."""

    url: str
    token: str | None


class Credentials(Protocol):
    """Gives access to one service, with tokens that it renews."""

    async def access(self) -> Access:
        """Return the access with a token that is valid now. Raises `IdentityUnavailable`."""

    async def renew(self, refused: Access) -> Access:
        """Return the access with a new token in place of the refused one; the same if there is no other.

        Raises `IdentityUnavailable`.
        """


class FixedCredentials:
    """A URL and a token that never change."""

    def __init__(self, url: str, token: str | None) -> None:
        self._access = Access(url, token)

    async def access(self) -> Access:
        return self._access

    async def renew(self, refused: Access) -> Access:
        return self._access

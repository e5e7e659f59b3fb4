"""The interface that finds the identity of a request, and its errors.

AuthError
└── IdentityUnavailable  the identity service cannot validate tokens now
"""

from collections.abc import Mapping
from typing import Protocol

from roost.web.auth.identity import Identity


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

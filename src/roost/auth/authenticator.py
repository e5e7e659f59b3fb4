"""From a request to an identity: the interface."""

from collections.abc import Mapping
from typing import Protocol

from roost.auth.identity import Identity


class Authenticator(Protocol):
    """Finds out who sent a request."""

    @property
    def challenge(self) -> str | None:
        """What to tell somebody who proved nothing, as WWW-Authenticate; None where nobody issues tokens."""

    async def identify(
        self, headers: Mapping[str, str], method: str = "GET", path: str = "/"
    ) -> Identity | None:
        """The identity that the headers (lower-case names) prove, None if they prove none.

        ``path`` is the whole one, with the prefix that the service is mounted under. Raises
        `IdentityUnavailable`.
        """

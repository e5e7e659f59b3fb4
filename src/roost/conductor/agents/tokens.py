"""The authenticator of a cell's endpoint: it knows hosts by their tokens."""

import asyncio
import time
from collections.abc import Callable, Mapping

from roost.auth import Identity, IdentityUnavailable
from roost.cells import Cell
from roost.cells.host_tokens import HostToken, ReadTokens, UseToken
from roost.model.token import token_digest
from roost.storage import StorageError

HOST_ROLE = "host"
"""The role of all hosts. The user of a host is the host's name."""

FRESH_SECONDS = 5.0
"""Seconds for which the tokens that were read count: a revoked one is valid for so long at most."""

UNKNOWN_SECONDS = 1.0
"""Seconds between two looks for a token that is unknown, so that wrong tokens cost the database little."""


class HostTokens:
    """Finds the host of a request by its X-Auth-Token, in the database of the cell.

    All tokens are read at once, and at most every `FRESH_SECONDS`: a thousand agents cost one statement.
    """

    challenge = None

    def __init__(self, cell: Cell, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._cell = cell
        self._monotonic = monotonic
        self._known: dict[str, HostToken] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def identify(
        self, headers: Mapping[str, str], method: str = "GET", path: str = "/"
    ) -> Identity | None:
        token = headers.get("x-auth-token")
        if token is None:
            return None
        digest = token_digest(token)
        try:
            await self._refresh(digest)
            known = self._known.get(digest)
            if known is not None and not known.is_used:
                known = await self._use(digest)
        except StorageError as error:
            # The database away: a host that is known asks in vain, and learns that from the answer.
            known = self._known.get(digest)
            if known is None:
                raise IdentityUnavailable(f"the tokens of hosts cannot be read: {error}") from error
        return None if known is None else Identity(known.host, roles=(HOST_ROLE,))

    async def _refresh(self, digest: str) -> None:
        """Read the tokens if they were read too long ago to judge this one."""
        if self._is_old(digest):
            async with self._reading:
                # Another request may have read them while this one waited.
                if self._is_old(digest):
                    began = self._monotonic()
                    self._known = await self._cell.read(ReadTokens())
                    self._read_at = began

    def _is_old(self, digest: str) -> bool:
        longest = FRESH_SECONDS if digest in self._known else UNKNOWN_SECONDS
        return self._monotonic() - self._read_at >= longest

    async def _use(self, digest: str) -> HostToken | None:
        """Note the first use of a token, which ends the other tokens of its host."""
        is_valid = await self._cell.write(UseToken(digest))
        self._read_at = float("-inf")
        await self._refresh(digest)
        return self._known.get(digest) if is_valid else None

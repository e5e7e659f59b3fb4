"""The authenticator of a cell's endpoint: it identifies hosts by their tokens."""

import asyncio
import time
from collections.abc import Callable, Mapping

import msgspec

from roost.model.text import error_text
from roost.model.token import token_digest
from roost.state.api_database.open_cells import CELL_SECONDS
from roost.state.cell_database import Cell
from roost.state.cell_database.host_admission import HostToken, read_host_tokens, use_token
from roost.storage import StorageError
from roost.web.auth import Identity, IdentityUnavailable

HOST_ROLE = "host"
"""The role of all hosts. The user of a host is the host's name."""

FRESH_SECONDS = 5.0
"""Seconds for which the tokens that were read are valid: a revoked token ends so much later at most."""

UNKNOWN_SECONDS = 1.0
"""Seconds between two reads for an unknown token, so that wrong tokens cost the database little."""


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
        self._reading: asyncio.Task[None] | None = None

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
                async with asyncio.timeout(CELL_SECONDS):
                    known = await self._use(known)
        except (StorageError, TimeoutError) as error:
            # The database is away: a known host is let in, and learns from the answer that its call fails.
            known = self._known.get(digest)
            if known is None:
                raise IdentityUnavailable(
                    f"the tokens of hosts cannot be read: {error_text(error)}"
                ) from error
        return None if known is None else Identity(known.host, roles=(HOST_ROLE,))

    async def _refresh(self, digest: str) -> None:
        """Read the tokens if they were read too long ago to judge this one.

        All requests wait for one read, and for `CELL_SECONDS` at most: a read for each, one after the other,
        would hold the last ones for minutes if the database hangs. Raises `StorageError` and TimeoutError.
        """
        while self._is_old(digest):
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
                self._reading.add_done_callback(_retrieved)
            reading = self._reading
            # Other requests wait for the same read: a request that is cancelled does not cancel it.
            await asyncio.shield(reading)
            if reading is self._reading:
                return  # However long it took.

    async def _read(self) -> None:
        began = self._monotonic()
        async with asyncio.timeout(CELL_SECONDS):
            known = await self._cell.read(read_host_tokens())
        # A read that began before a token was used is stale.
        if asyncio.current_task() is self._reading:
            self._known, self._read_at = known, began

    def _is_old(self, digest: str) -> bool:
        longest = FRESH_SECONDS if digest in self._known else UNKNOWN_SECONDS
        return self._monotonic() - self._read_at >= longest

    async def _use(self, token: HostToken) -> HostToken | None:
        """Note the first use of a token, which ends its host's other tokens. None if it is not valid."""
        is_valid = await self._cell.write(use_token(token.digest))
        # A read that is under way may have seen the tokens as they were before.
        self._reading = None
        if not is_valid:
            self._known.pop(token.digest, None)
            return None
        used = msgspec.structs.replace(token, is_used=True)
        others = {digest: each for digest, each in self._known.items() if each.host != token.host}
        self._known = {**others, token.digest: used}
        return used


def _retrieved(reading: asyncio.Task[None]) -> None:
    """Retrieve the error of a read: the requests that waited have it, but all of them may be gone."""
    if not reading.cancelled():
        reading.exception()

"""The authenticator for Keystone's tokens. It never blocks the event loop."""

import asyncio
import hashlib
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from roost.process.logs.outages import OutageLines
from roost.process.option_source import Source
from roost.web.auth.identity import Identity, IdentityUnavailable
from roost.web.auth.token_check import TOKEN_HEADERS, TokenCheck, TokenRequest, ValidatedToken

THREADS = 8
"""Threads that validate tokens."""

MAX_VALIDATIONS = 1_000
"""Tokens that are validated at the same time at most. A request with a further one gets a 503."""

CACHE_SECONDS = 10.0
"""Seconds for which a validated token is cached at most; after them it is validated again."""

CACHED_TOKENS = 10_000
"""Tokens that are cached at most. With more, the cache is emptied."""


class Keystone:
    """Finds the identity of a request by validating its token with Keystone.

    keystonemiddleware blocks, even if its cache has the token, so it runs in threads. A busy client sends one
    token thousands of times a second, so this class caches validated tokens as well, by the token's hash. An
    entry lasts until the token expires, and for at most `CACHE_SECONDS` or ``token_cache_time``. So a revoked
    token is accepted for at most ``token_cache_time`` + `CACHE_SECONDS`. Refusals are not cached, and neither
    are tokens that are valid for some requests only: application credentials with access rules, and tokens
    sent together with a service token.

    While a token is validated, other requests with the same token wait for the result.
    """

    def __init__(self, source: Source) -> None:
        """Read the options. Keystone is not contacted yet.

        Raises:
            OperatorError: The options cannot work.
        """
        self._check = TokenCheck(source)
        self._cache_seconds = min(CACHE_SECONDS, self._check.cache_seconds)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="keystone")
        self._cached: dict[bytes, tuple[Identity, float]] = {}
        self._validations: dict[bytes, asyncio.Future[ValidatedToken | None]] = {}
        self._away = OutageLines(__name__, "tokens cannot be validated", "tokens are validated again")

    @property
    def challenge(self) -> str:
        return self._check.challenge

    async def identify(
        self, headers: Mapping[str, str], method: str = "GET", path: str = "/"
    ) -> Identity | None:
        key = _key(headers)
        if (cached := self._cached.get(key)) is not None and time.time() < cached[1]:
            return cached[0]
        while (validation := self._validations.get(key)) is not None:
            outcome = await _outcome(validation)
            self._end(key, validation)
            if isinstance(outcome, IdentityUnavailable):
                raise IdentityUnavailable(str(outcome))
            if isinstance(outcome, ValidatedToken) and outcome.for_any_request:
                return outcome.identity
        token = await self._validate(key, TokenRequest(method, path, headers))
        return token and token.identity

    async def _validate(self, key: bytes, request: TokenRequest) -> ValidatedToken | None:
        if len(self._validations) >= MAX_VALIDATIONS:
            raise IdentityUnavailable(f"{MAX_VALIDATIONS} tokens are being validated already")
        validation = asyncio.get_running_loop().run_in_executor(
            self._threads, copy_context().run, self._check, request
        )
        self._validations[key] = validation
        validation.add_done_callback(lambda done: self._end(key, done))
        try:
            # Shielded, because other requests may wait for the result when this one is cancelled.
            token = await asyncio.shield(validation)
        except IdentityUnavailable as error:
            self._away.failed(error=str(error))
            raise
        self._away.succeeded()
        self._cache(key, token)
        return token

    def _end(self, key: bytes, validation: "asyncio.Future[ValidatedToken | None]") -> None:
        if self._validations.get(key) is validation:
            del self._validations[key]

    def _cache(self, key: bytes, token: ValidatedToken | None) -> None:
        if token is None or not token.for_any_request or self._cache_seconds <= 0:
            return
        if len(self._cached) >= CACHED_TOKENS:
            self._cached.clear()
        until = min(token.expires, time.time() + self._cache_seconds)
        self._cached[key] = (token.identity, until)


def _key(headers: Mapping[str, str]) -> bytes:
    found = hashlib.sha256()
    for name in TOKEN_HEADERS:
        found.update(repr(headers.get(name)).encode())
    return found.digest()


async def _outcome(
    validation: "asyncio.Future[ValidatedToken | None]",
) -> ValidatedToken | BaseException | None:
    await asyncio.wait([validation])
    return None if validation.cancelled() else validation.exception() or validation.result()

"""Tokens of Keystone, without waiting for it in the event loop."""

import asyncio
import hashlib
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import structlog

from roost.auth.errors import IdentityUnavailable
from roost.auth.identity import Identity
from roost.auth.source import Source
from roost.auth.token_check import TOKEN_HEADERS, Call, TokenCheck, Verdict

_log = structlog.get_logger()

_THREADS = 8
_VALIDATED_AT_ONCE = 1_000
_REMEMBERED_SECONDS = 10.0
_REMEMBERED_TOKENS = 10_000


class Keystone:
    """Finds out by Keystone who sent a request.

    keystonemiddleware blocks, even where its cache knows the token, so it runs in threads. A busy client
    sends one token thousands of times a second, so what came out is also remembered here, by the token's
    hash: until the token expires, and no longer than ten seconds or ``token_cache_time``. A token that is
    revoked is so accepted for at most ``token_cache_time`` and ten seconds more. Refusals are not
    remembered, nor is what does not hold for every call: access rules of application credentials, tokens
    sent together with a service's token.

    While a token is being validated, other requests with it wait for the outcome instead of asking as well.
    """

    def __init__(self, source: Source) -> None:
        """Raises `OperatorError` for options that cannot work. Keystone is not asked yet."""
        self._check = TokenCheck(source)
        self._remember_for = min(_REMEMBERED_SECONDS, self._check.cache_seconds)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="keystone")
        self._remembered: dict[bytes, tuple[Identity, float]] = {}
        self._asked: dict[bytes, asyncio.Future[Verdict | None]] = {}

    @property
    def challenge(self) -> str:
        return self._check.challenge

    async def identify(
        self, headers: Mapping[str, str], method: str = "GET", path: str = "/"
    ) -> Identity | None:
        key = _key(headers)
        if (remembered := self._remembered.get(key)) is not None and time.time() < remembered[1]:
            return remembered[0]
        while (asked := self._asked.get(key)) is not None:
            outcome = await _outcome(asked)
            self._forget(key, asked)
            if isinstance(outcome, IdentityUnavailable):
                raise IdentityUnavailable(str(outcome))
            if isinstance(outcome, Verdict) and outcome.for_any_call:
                return outcome.identity
        verdict = await self._validate(key, Call(method, path, headers))
        return verdict and verdict.identity

    async def _validate(self, key: bytes, call: Call) -> Verdict | None:
        if len(self._asked) >= _VALIDATED_AT_ONCE:
            raise IdentityUnavailable(f"{_VALIDATED_AT_ONCE} tokens are being validated already")
        asked = asyncio.get_running_loop().run_in_executor(self._threads, self._check, call)
        self._asked[key] = asked
        asked.add_done_callback(lambda done: self._forget(key, done))
        try:
            # Shielded: who waits for it as well must not lose it when this request is given up.
            verdict = await asyncio.shield(asked)
        except IdentityUnavailable as error:
            _log.error("tokens cannot be validated", error=str(error))
            raise
        self._remember(key, verdict)
        return verdict

    def _forget(self, key: bytes, asked: "asyncio.Future[Verdict | None]") -> None:
        if self._asked.get(key) is asked:
            del self._asked[key]

    def _remember(self, key: bytes, verdict: Verdict | None) -> None:
        if verdict is None or not verdict.for_any_call or self._remember_for <= 0:
            return
        if len(self._remembered) >= _REMEMBERED_TOKENS:
            self._remembered.clear()
        until = min(verdict.expires, time.time() + self._remember_for)
        self._remembered[key] = (verdict.identity, until)


def _key(headers: Mapping[str, str]) -> bytes:
    found = hashlib.sha256()
    for name in TOKEN_HEADERS:
        found.update(repr(headers.get(name)).encode())
    return found.digest()


async def _outcome(asked: "asyncio.Future[Verdict | None]") -> Verdict | BaseException | None:
    await asyncio.wait([asked])
    return None if asked.cancelled() else asked.exception() or asked.result()

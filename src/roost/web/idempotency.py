"""Requests that create something and may be sent again: the key of the client, and the answer that is kept.

A client that gets no answer, or one that tells it nothing, cannot know whether its request was carried out.
So it names the request by a key in the header ``Idempotency-Key`` and sends it again until it has an answer:
what the request creates is created once, and each later answer is the first one.

    first request ──▶ no answer is kept ──▶ create; the answer is kept by the transaction that creates
    sent again    ──▶ an answer is kept ──▶ that answer, with ``Idempotent-Replayed: true``
    meanwhile     ──▶ the key is in work in this process ──▶ 409
    another body  ──▶ the answer is that of another request ──▶ 422

A refused request has created nothing, so nothing is kept of it. If the transaction is still under way after
its client got an error, the database holds the lock of the key's row. The request that is sent again waits
for that transaction, and is refused by the row if it commits.

Source: draft-ietf-httpapi-idempotency-key-header.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol

import msgspec

from roost.model.idempotency import IdempotencyKey, KeyedAnswer
from roost.web.errors import RETRY_SECONDS, BadRequest, Conflict, HTTPError, Unprocessable
from roost.web.request import Request, Response

HEADER: Final = "Idempotency-Key"
"""The request header with the client's key."""

REPLAYED: Final = "idempotent-replayed"
"""The response header that says that the answer was kept from an earlier request."""

LONGEST_KEY: Final = 255
"""Characters of a key at most. A longer key is refused."""

_KEY = re.compile(rf"[!-+\--~]{{1,{LONGEST_KEY}}}")
"""Printable ASCII without spaces and commas. A comma would separate two headers that a proxy has joined."""

_SERVER_ERROR: Final = 500


@dataclass(frozen=True)
class Creation:
    """The mark of an operation that creates something: it takes a key of the client's.

    - ``atomic``: the handler keeps the answer (`Request.keyed`) in the transaction that creates. Otherwise
      the names of what is created keep it from being created twice, and the answer is kept after it.
    - ``secret``: the answer has secrets. They are not kept: see `SecretNotKept`.
    - ``canonical``: the part of the body that two requests with one key have in common.
    """

    atomic: bool = True
    secret: bool = False
    canonical: Callable[[Any], object] = lambda body: body


class MalformedKey(BadRequest):
    """The header Idempotency-Key has no key that can be used."""

    code: ClassVar[str] = "roost.idempotency_key_malformed"


class KeyReused(Unprocessable):
    """The key was used for another request. Take a new key for each request."""

    code: ClassVar[str] = "roost.idempotency_key_reused"


class KeyInWork(Conflict):
    """The request with this key is still in work. Send it again later."""

    code: ClassVar[str] = "roost.idempotency_key_in_work"
    headers = MappingProxyType({"retry-after": str(RETRY_SECONDS)})


class SecretNotKept(Conflict):
    """The request with this key was carried out. The secret in its answer is not kept: make a new one."""

    code: ClassVar[str] = "roost.secret_not_kept"


class KeptAnswers(Protocol):
    """Where answers are kept."""

    async def find(self, key: IdempotencyKey) -> KeyedAnswer | None:
        """The answer that is kept for a key, to whichever request; None if there is none."""

    async def keep(self, answer: KeyedAnswer) -> None:
        """Keep an answer, unless there is one for its key. It never raises."""


class NoAnswers:
    """Keeps no answers, for services that have no database for them."""

    async def find(self, key: IdempotencyKey) -> KeyedAnswer | None:
        return None

    async def keep(self, answer: KeyedAnswer) -> None:
        pass


def key_of(
    req: Request, creation: Creation, operation: str, params: Mapping[str, str], at: float
) -> IdempotencyKey | None:
    """The key of a request, None if it has none. ``operation``: method and path of the operation.

    Raises:
        MalformedKey: It has characters that no key has, or too many.
    """
    sent = req.get_header(HEADER)
    if sent is None:
        return None
    if _KEY.fullmatch(sent) is None:
        raise MalformedKey(
            f"{HEADER} is {sent[:LONGEST_KEY]!r}: send one key of 1 to {LONGEST_KEY} printable ASCII "
            "characters without spaces and commas, a new uuid for example"
        )
    scope = (req.identity.project_id, req.identity.user_id, operation, sent)
    asked = (dict(params), req.query, creation.canonical(req.body))
    return IdempotencyKey(_digest(scope), _digest(asked), at)


class KeyedRequests:
    """Carries out requests with keys, each once. It belongs to one application of one process."""

    def __init__(self, answers: KeptAnswers) -> None:
        self._answers = answers
        self._in_work: set[str] = set()

    async def once(
        self,
        req: Request,
        resp: Response,
        creation: Creation,
        key: IdempotencyKey,
        create: Callable[[], Awaitable[bytes]],
    ) -> bytes:
        """The body of the answer to a request with a key; ``create`` carries it out.

        Raises what ``create`` raises, and `KeyInWork`, `KeyReused`, `SecretNotKept`.
        """
        if key.id in self._in_work:
            raise KeyInWork("The request with this Idempotency-Key is still in work: send it again later.")
        self._in_work.add(key.id)
        try:
            kept = await self._answers.find(key)
            if kept is None:
                try:
                    return await self._created(req, resp, creation, key, create)
                except HTTPError as refusal:
                    if refusal.status >= _SERVER_ERROR:
                        raise
                    # What refuses it may be what the same request, sent before, has created meanwhile.
                    kept = await self._answers.find(key)
                    if kept is None:
                        raise
            return _replayed(resp, key, kept)
        finally:
            self._in_work.discard(key.id)

    async def _created(
        self,
        req: Request,
        resp: Response,
        creation: Creation,
        key: IdempotencyKey,
        create: Callable[[], Awaitable[bytes]],
    ) -> bytes:
        req.idempotency_key, req.answer_status = key, resp.status_code
        body = await create()
        if creation.atomic:
            assert req.answer_kept, f"{req.path} creates something and does not keep its answer with it"
        else:
            kept = None if creation.secret else body
            await self._answers.keep(KeyedAnswer(key, resp.status_code, kept))
        return body


def _replayed(resp: Response, key: IdempotencyKey, kept: KeyedAnswer) -> bytes:
    if kept.key.request != key.request:
        raise KeyReused(
            "The Idempotency-Key was used for another request: take a new key for each request that is not "
            "the same one sent again."
        )
    if kept.body is None:
        raise SecretNotKept(
            "The request with this Idempotency-Key was carried out. The token in its answer is not kept: "
            "make a new one, for a host by POST /v1/hosts/{host}/token."
        )
    resp.status = kept.status
    resp.set_header(REPLAYED, "true")
    return kept.body


def _digest(value: object) -> str:
    try:
        text = msgspec.json.encode(value, order="deterministic")
    except UnicodeEncodeError:
        # A lone surrogate, which JSON can escape and UTF-8 cannot encode.
        text = repr(value).encode(errors="backslashreplace")
    return hashlib.sha256(text).hexdigest()

"""Requests that create something and may be sent again: the client's key, and the stored answer.

A client that gets no answer, or an error that leaves the outcome open, cannot know whether its request was
carried out. So it names the request by a key in the header ``Idempotency-Key`` and sends it again until it
has an answer: the request creates its resource once, and each later answer repeats the first one.

    first request ──▶ no stored answer ──▶ create; the transaction that creates stores the answer
    sent again    ──▶ a stored answer ──▶ that answer, with ``Idempotent-Replayed: true``
    meanwhile     ──▶ this process works on the key ──▶ 409
    another body  ──▶ the stored answer is that of another request ──▶ 422

A refused request has created nothing, so no answer is stored. If the transaction is still under way after its
client got an error, it holds the database's lock on the row of the key. The request that is sent again waits
for that transaction, and its insert of the row fails if that commits.

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
"""The response header of an answer that was stored for an earlier request."""

LONGEST_KEY: Final = 255
"""Characters of a key at most. A longer key is refused."""

_KEY = re.compile(rf"[!-+\--~]{{1,{LONGEST_KEY}}}")
"""Printable ASCII without spaces and commas. A comma would separate two headers that a proxy has joined."""

_SERVER_ERROR: Final = 500


@dataclass(frozen=True)
class Creation:
    """The mark of an operation that creates something, and therefore takes a client's key.

    - ``atomic``: the handler stores the answer (`Request.keyed`) in the transaction that creates. Otherwise
      unique names prevent that anything is created twice, and the answer is stored after the transaction.
    - ``secret``: the answer has secrets. They are not stored: see `SecretNotKept`.
    - ``canonical``: returns the part of the body that two requests with one key must have in common.
    """

    atomic: bool = True
    secret: bool = False
    canonical: Callable[[Any], object] = lambda body: body


class MalformedKey(BadRequest):
    """The key in the header Idempotency-Key is malformed."""

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
    """A store of answers."""

    async def find(self, key: IdempotencyKey) -> KeyedAnswer | None:
        """Return the stored answer for a key, which may be that of another request; None if there is none."""

    async def keep(self, answer: KeyedAnswer) -> None:
        """Store an answer, unless there is one for its key. It never raises."""


class NoAnswers:
    """Stores no answers, for services that have no database for them."""

    async def find(self, key: IdempotencyKey) -> KeyedAnswer | None:
        return None

    async def keep(self, answer: KeyedAnswer) -> None:
        pass


def key_of(
    req: Request, creation: Creation, operation: str, params: Mapping[str, str], at: float
) -> IdempotencyKey | None:
    """Read the key of a request, None if it has none. ``operation``: method and path of the operation.

    Raises:
        MalformedKey: The key is too long or has a character that keys must not have.
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
    """Carries out each request with a key once. It belongs to one application of one process."""

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
        """Return the body of the answer to a request with a key; ``create`` carries it out.

        Raises `KeyInWork`, `KeyReused`, `SecretNotKept`, and the errors of ``create``.
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
                    # It may conflict with the resource that the same request, sent before, has just created.
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

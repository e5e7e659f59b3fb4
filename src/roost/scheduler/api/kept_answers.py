"""The answers of a scheduler to requests with a key of the client's."""

import asyncio
from collections import OrderedDict

import structlog

from roost.model.idempotency import IdempotencyKey, KeyedAnswer
from roost.state.api_database.kept_answers import StoredAnswers
from roost.storage import Database, StorageError

MOST_KEPT = 1_000
"""Most answers that a process keeps in memory. Beyond, the oldest are dropped."""

MOST_BYTES = 64 * 2**20
"""Most bytes of these answers together. One for a thousand instances with alternates has some megabytes."""

_log = structlog.get_logger()


class SchedulerAnswers:
    """Keeps answers in memory and, beside the request, in the API database where there is one.

    Claims are in another database, or in a placement service. They are not made twice, because a request with
    a key always names the same consumers. So an answer need not be durable before it is sent, and a decision
    neither waits for the API database nor fails with it.
    """

    def __init__(
        self, api: Database | None = None, most: int = MOST_KEPT, most_bytes: int = MOST_BYTES
    ) -> None:
        self._stored = None if api is None else StoredAnswers(api)
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._known: OrderedDict[str, KeyedAnswer] = OrderedDict()
        self._storing: set[asyncio.Task[None]] = set()

    async def find(self, key: IdempotencyKey) -> KeyedAnswer | None:
        """Return the answer that is kept for a key; None without one, or if the API database is away."""
        known = self._known.get(key.id)
        if known is not None or self._stored is None:
            return known
        try:
            return await self._stored.find(key)
        except StorageError as error:
            _log.warning("kept answers cannot be read", error=str(error))
            return None

    async def keep(self, answer: KeyedAnswer) -> None:
        """Keep an answer."""
        self._bytes += _size(answer) - _size(self._known.pop(answer.key.id, None))
        self._known[answer.key.id] = answer
        while len(self._known) > self._most or self._bytes > self._most_bytes:
            _, oldest = self._known.popitem(last=False)
            self._bytes -= _size(oldest)
        if self._stored is not None:
            task = asyncio.create_task(self._stored.keep(answer))
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)

    async def close(self) -> None:
        """Wait until the answers are stored."""
        await asyncio.gather(*self._storing, return_exceptions=True)


def _size(answer: KeyedAnswer | None) -> int:
    """Return the bytes of the body of an answer."""
    return 0 if answer is None or answer.body is None else len(answer.body)

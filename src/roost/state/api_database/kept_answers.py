"""The answers to requests with a key of the client's, in the API database.

The row of a key is written by the transaction that creates what the request asks for. So key and creation are
both there, or neither is: nothing has to be cleaned up after a crash, and no dead process holds a key.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from roost.model.idempotency import IdempotencyKey, KeyedAnswer
from roost.state.api_database.tables import kept_answers
from roost.storage import (
    Database,
    StorageError,
    insert_missing,
    is_duplicate_key,
    one_of,
    short_read,
    transaction,
)
from roost.storage.batches import perform
from roost.web.idempotency import KeyInWork

T = TypeVar("T")

KEPT_SECONDS = 86_400.0
"""Seconds for which an answer is kept at least."""

PRUNED_AT_ONCE = 500
"""Answers that one transaction removes at most."""

_KEEP = sa.insert(kept_answers)
_FIND = sa.select(kept_answers).where(kept_answers.c.id == sa.bindparam("of"))
_OLD = (
    sa.select(kept_answers.c.id)
    .where(kept_answers.c.at < sa.bindparam("before"))
    .order_by(kept_answers.c.at)
    .limit(PRUNED_AT_ONCE)
)
_PRUNE = sa.delete(kept_answers).where(one_of(kept_answers.c.id, "some"))

_log = structlog.get_logger()


class Once(msgspec.Struct, Generic[T], frozen=True):
    """A transaction that creates something, and stores the answer to its request.

    ``answer``: returns the answer to store, given the result of ``work``; None: nothing is stored.
    Raises `KeyInWork`, and nothing is created, if another transaction has kept an answer for the key.
    """

    work: Callable[[Connection], T]
    answer: Callable[[T], KeyedAnswer | None]

    @property
    def keys(self) -> Collection[str]:
        return getattr(self.work, "keys", ())

    def __call__(self, connection: Connection) -> T:
        result: T = self.together(connection, (self,))[0]
        return result

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[Once[Any]]") -> list[Any]:
        results = perform(connection, [each.work for each in works])
        answers = (each.answer(result) for each, result in zip(works, results, strict=True))
        rows = [_row(answer) for answer in answers if answer is not None]
        try:
            if rows:
                connection.execute(_KEEP, rows)
        except IntegrityError as error:
            if not is_duplicate_key(error):
                raise
            raise KeyInWork("Another request with this Idempotency-Key was carried out meanwhile.") from error
        return results


@short_read
def find_answer(connection: Connection, key: str) -> KeyedAnswer | None:
    """Return the stored answer for a key, None if there is none."""
    row = connection.execute(_FIND, {"of": key}).one_or_none()
    if row is None:
        return None
    return KeyedAnswer(IdempotencyKey(row.id, row.request, row.at), row.status, row.body)


@transaction
def keep_answer(connection: Connection, answer: KeyedAnswer) -> None:
    """Store an answer whose creation is in another database, unless there is one for its key."""
    if find_answer(answer.key.id)(connection) is None:
        insert_missing(connection, _KEEP, _row(answer))


@transaction
def prune_kept_answers(connection: Connection, older_than: float) -> int:
    """Remove answers that were given before a time, `PRUNED_AT_ONCE` at most. Returns their number."""
    old = connection.execute(_OLD, {"before": older_than}).scalars().all()
    if old:
        connection.execute(_PRUNE, {"some": old})
    return len(old)


class StoredAnswers:
    """The kept answers of an API database; see `roost.web.idempotency.KeptAnswers`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, key: IdempotencyKey) -> KeyedAnswer | None:
        """Return the stored answer for a key. Raises `StorageError`."""
        return await self._database.read(find_answer(key.id))

    async def keep(self, answer: KeyedAnswer) -> None:
        """Store an answer. A failure is only logged: the creation is done, and the client gets its answer."""
        try:
            await self._database.write(keep_answer(answer))
        except StorageError as error:
            _log.warning("the answer to a request is not kept", error=str(error))


def _row(answer: KeyedAnswer) -> dict[str, object]:
    key = answer.key
    return {"id": key.id, "request": key.request, "at": key.at, "status": answer.status, "body": answer.body}

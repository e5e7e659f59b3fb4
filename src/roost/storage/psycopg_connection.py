"""PostgreSQL connections that give up a server which says nothing."""

from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

T = TypeVar("T")
Connection = psycopg.Connection[Any]


def connection_class(answer_seconds: float) -> type[Connection]:
    """A class of connections that wait for an answer for at most so many seconds.

    libpq has no such limit, and TCP's see nothing: the kernel of a server that hangs still acknowledges.
    """

    class AnsweredConnection(psycopg.Connection[Any]):
        def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
            try:
                return super().wait(gen, interval, answer_seconds if timeout is None else timeout)
            except psycopg.OperationalError as error:
                if error.sqlstate is None and self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                    # The answer may still come, and must not be taken for that to another statement.
                    self.close()
                    raise psycopg.OperationalError(f"no answer for {answer_seconds:g} s") from error
                raise

    return AnsweredConnection

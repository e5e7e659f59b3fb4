"""PostgreSQL connections: closed when the server does not answer in time, checked without a message to it."""

import select
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

T = TypeVar("T")
Connection = psycopg.Connection[Any]


def connection_class(answer_seconds: float) -> type[Connection]:
    """Return a class of connections that wait at most ``answer_seconds`` for the answer to a statement.

    libpq has no such limit. TCP's time limits do not help: the kernel of a hanging server still acknowledges.
    """

    class AnsweredConnection(psycopg.Connection[Any]):
        def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
            try:
                return super().wait(gen, interval, answer_seconds if timeout is None else timeout)
            except psycopg.OperationalError as error:
                if error.sqlstate is None and self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                    # A late answer must not be read as the answer to the next statement.
                    self.close()
                    raise psycopg.OperationalError(f"no answer for {answer_seconds:g} s") from error
                raise

    return AnsweredConnection


def was_ended(connection: Connection) -> bool:
    """Return whether the server has ended an idle connection, as far as this machine knows. Sends nothing.

    A server sends something on an idle connection only when it ends it, or after a change of its settings.
    """
    if connection.closed:
        return True
    idle = select.poll()
    idle.register(connection.fileno(), select.POLLIN)
    return bool(idle.poll(0))

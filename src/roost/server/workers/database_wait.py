"""Waits for database servers that are away at the start, so that the program need not be started again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeVar

import structlog

from roost.model.errors import OperatorError
from roost.storage import DatabaseMisconfigured, DatabaseUnavailable, DatabaseUrl, as_url
from roost.web.dispatch import Application, Message, Receive, Send
from roost.web.errors import RETRY_SECONDS
from roost.web.health import Health, HealthCheck, HealthOptions

T = TypeVar("T")

PAUSE_SECONDS = 1.0
"""Seconds between two attempts to open the databases."""

_BODY = (
    b'{"errors":[{"status":503,"title":"Service Unavailable",'
    b'"detail":"The service has started and waits for its database; try again."}]}'
)

_log = structlog.get_logger()


def is_away(error: BaseException) -> bool:
    """Return whether an error, or one that caused it, says that a database does not answer now."""
    if isinstance(error, DatabaseMisconfigured):
        return False
    cause = error.__cause__
    return isinstance(error, DatabaseUnavailable) or (cause is not None and is_away(cause))


def on_servers(urls: Iterable[DatabaseUrl | str | None]) -> bool:
    """Return whether a database is on a server. A file that cannot be opened is an error, not an outage.

    Raises:
        DatabaseMisconfigured: a text is not a URL.
    """
    return any(not as_url(url).is_sqlite for url in urls if url is not None)


def tell_away(error: Exception) -> None:
    """Log a warning that the start waits for a database."""
    _log.warning("the start waits for a database", error=str(error))


def prepare_unless_away(prepare: Callable[[], None], urls: Iterable[DatabaseUrl | str | None]) -> None:
    """Prepare databases. If a server is away, log a warning: worker processes wait for it, and prepare them.

    Raises: every other error of ``prepare``.
    """
    try:
        prepare()
    except OperatorError as error:
        if not (is_away(error) and on_servers(urls)):
            raise
        tell_away(error)


async def open_when_there(
    stack: AsyncExitStack,
    open_: Callable[[AsyncExitStack], Awaitable[T]],
    away: Callable[[OperatorError], Awaitable[None]],
    pause: float = PAUSE_SECONDS,
) -> T:
    """Open a service once all its databases answer. A failed attempt is closed before the next one.

    ``away``: called after the first failed attempt. Later attempts are logged if their error differs.
    Raises: every error of ``open_`` but that a database is away.
    """
    told: str | None = None
    while True:
        try:
            async with AsyncExitStack() as tried:
                opened = await open_(tried)
                stack.push_async_callback(tried.pop_all().aclose)
                return opened
        except OperatorError as error:
            if not is_away(error):
                raise
            if told is None:
                await away(error)
            elif told != str(error):
                tell_away(error)
            told = str(error)
        await asyncio.sleep(pause)


@dataclass(frozen=True)
class DatabaseWait:
    """The wait of a worker process for its databases: it answers 503 meanwhile.

    - ``prepare``: creates or checks the tables, in a thread, before each further attempt to open them.
    - ``edge``: puts the edge of the service around an application, with health.
    - ``health``: the options of health.
    """

    prepare: Callable[[], None]
    edge: Callable[[Application, Health], Application]
    health: HealthOptions

    def application(self) -> Application:
        """Return an application that answers 503, and tells probes that it waits for the database."""
        check = HealthCheck("database", judge=lambda _: "the start waits for it; the log has the error")
        return self.edge(_unavailable, Health((check,), self.health))


async def _unavailable(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(_BODY)).encode()),
        (b"retry-after", str(RETRY_SECONDS).encode()),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": _BODY})

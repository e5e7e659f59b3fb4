"""The record of one request, from its arrival until its response is sent."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any, Final

from roost.process.logs.request_ids import HEADER, RequestIds, new_request_ids
from roost.web.auth import NOBODY, Identity
from roost.web.dispatch import Message, Send

SCOPE_KEY: Final = "roost.observation"
"""The key of the ASGI scope under which the edge puts the observation of a request."""

_ID_HEADER = HEADER.encode()

LONG: Final = 2**21
"""Bytes of a body above which it is sent in parts; a thousand candidates have half as many."""

UNKNOWN: Final = "unknown"
"""The operation of a request that has none, or that ends before routing."""


SendLong = Callable[["Observation", Message], Awaitable[None]]


class Observation:
    """One request and its response, as far as they are known.

    - ``scope``: the ASGI scope, as the server made it.
    - ``ids``: the request's own id, and the id that its client has sent.
    - ``identity``: the user, as soon as the token is validated, else `NOBODY`.
    - ``span``: the request's span while a trace is recorded, else None.
    - ``start``: the time of arrival, in seconds of `time.perf_counter`.
    - ``operation``: method and path template, such as ``GET /traits/{name}``, as soon as the request is
      routed, else `UNKNOWN`. The number of values is bounded, so it serves as a label of metrics.
    - ``status``: the status of the response, None before it begins.
    - ``sent``: bytes of the response's body, as handed to the server.
    - ``seconds``: the duration from arrival to the end of the response, 0 before it.
    - ``send_part``: the server's own ``send``. ``send_long``: the function that sends bodies of more than
      `LONG` bytes in its place; None: there is none.
    """

    __slots__ = (
        "identity", "ids", "operation", "scope", "seconds", "send_long", "send_part", "sent", "span", "start",
        "status",
    )  # fmt: skip

    def __init__(self, scope: Message, send: Send | None = None) -> None:
        self.scope = scope
        self.ids = _ids(scope)
        self.identity: Identity = NOBODY
        self.span: AbstractContextManager[None] | None = None
        self.start = perf_counter()
        self.operation = UNKNOWN
        self.status: int | None = None
        self.sent = 0
        self.seconds = 0.0
        self.send_part: Any = send
        self.send_long: SendLong | None = None

    def operation_name(self) -> str:
        """Return the operation, `UNKNOWN` if it is not known yet."""
        return self.operation

    def send(self, message: Message) -> Awaitable[None]:
        """Note status and bytes of a message of the response, and hand it to the server."""
        if message["type"] == "http.response.body":
            size = len(message.get("body", b""))
            self.sent += size
            if size > LONG and self.send_long is not None:
                return self.send_long(self, message)
        elif message["type"] == "http.response.start":
            self.status = message["status"]
        sent: Awaitable[None] = self.send_part(message)
        return sent


def observation_of(scope: Message) -> Observation:
    """Return the observation that the edge made of a request; without an edge, a new one."""
    return scope.get(SCOPE_KEY) or Observation(scope)


def _ids(scope: Message) -> RequestIds:
    for name, value in scope.get("headers", ()):
        if name == _ID_HEADER:
            return new_request_ids(value.decode("latin-1"))
    return new_request_ids(None)

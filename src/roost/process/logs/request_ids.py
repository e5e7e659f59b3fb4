"""The ids of the requests that the current task works for.

Each request has a local id, made by the service that receives it, and may have a global id, which its client
sends in the header ``X-Openstack-Request-Id``, so that the lines of several services can be found by one id.
"""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

HEADER = "x-openstack-request-id"
"""The header of a request with the global id, and of a response with the local one."""

_FORM = re.compile(r"req-[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}")


class RequestIds(NamedTuple):
    """The ids of one request. ``of_caller`` is the global id, None if the client sent none."""

    own: str
    of_caller: str | None = None

    @property
    def onward(self) -> str:
        """The global id for requests to other services: the client's, or else this request's own."""
        return self.of_caller or self.own


_current: ContextVar[tuple[RequestIds, ...]] = ContextVar("requests", default=())

current_requests = _current.get
"""Return the ids of the requests that the current task works for: none, one, or those of a shared commit."""

enter, leave = _current.set, _current.reset
"""Set the ids of the current task, and undo that, for callers that cannot afford a context manager."""


@contextmanager
def serving(*requests: RequestIds) -> Iterator[None]:
    """Attach the ids of these requests to all records that are logged in the context."""
    token = _current.set(requests)
    try:
        yield
    finally:
        _current.reset(token)


def new_request_ids(header: str | None) -> RequestIds:
    """Return the ids of a new request.

    ``header``: the value of the header X-Openstack-Request-Id. A value without the form of an id is
    ignored. Source: oslo.middleware's ``request_id``.
    """
    return RequestIds(_new_id(), header if header and _FORM.fullmatch(header) else None)


def _new_id() -> str:
    """A random UUID of version 4 after ``req-``. It is no secret, so the fastest random source suffices."""
    digits = f"{random.getrandbits(128):032x}"
    return f"req-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

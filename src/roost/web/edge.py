"""The edge of a service: the one wrapper around its ASGI application, which sees each request from outside.

Every service has one edge, outside of `dispatch`. It makes the `Observation` of a request, which the kernel
completes (`Observation.operation`), and calls the parts that it is composed of:

    request ─▶ open path? ─▶ watches begin ─▶ admission ─▶ application ─▶ watches end
                   │                              │ refused
                   └─▶ its own application        └─▶ the refusal, instead of the application

- ``open_paths``: applications for single paths that always answer, such as health. They need no token, are
  not watched, and are not counted as in flight. A request with too large a head does not reach them.
- ``watches``: see each request at its beginning and at its end, refused ones too: metrics, the access line,
  the request ids of log lines, the span of a trace. `Watch.begin` and `Watch.end` run in the context of the
  request, so a context variable that `begin` sets is seen by the application.
- ``holds``: takes the steps of requests that hold the event loop for long.
- ``admission``: limits what is in flight. A refused request has a status and is watched as any other.

To add a part: write a class in a module of its own, and pass it in `roost.server.edge`; the edge
itself stays as it is. A part with nothing to do is left out when the edge is composed, and costs nothing.
"""

from collections.abc import Mapping, Sequence
from time import perf_counter
from types import MappingProxyType
from typing import Protocol

from roost.process.timed_steps import Holds, TimedSteps
from roost.web.dispatch import Application, Message, Receive, Send
from roost.web.limits import is_head_too_large
from roost.web.observation import SCOPE_KEY, Observation

_NO_PATHS: Mapping[str, Application] = MappingProxyType({})


class Watch(Protocol):
    """A part of the edge that sees requests and changes none. It must not raise."""

    def begin(self, request: Observation) -> None:
        """Note that a request has arrived. Its operation and status are not known yet."""

    def end(self, request: Observation) -> None:
        """Note that the request is over. ``status`` is None if no response was begun."""


class AdmissionController(Protocol):
    """The part of the edge that decides whether a request is served."""

    def enter(self, request: Observation) -> Application | None:
        """Admit a request, with None, or return the application that refuses it.

        It may set ``request.send_long``, which then sends the long bodies of the response.
        """

    def leave(self, request: Observation) -> None:
        """Note that an admitted request is over. Not called for a refused one."""


class Edge:
    """An ASGI application around another one. ``in_flight``: the number of requests under way."""

    def __init__(
        self,
        application: Application,
        open_paths: Mapping[str, Application] = _NO_PATHS,
        watches: Sequence[Watch] = (),
        admission: AdmissionController | None = None,
        holds: Holds | None = None,
    ) -> None:
        self.in_flight = 0
        self._application = application
        self._open_paths = open_paths
        self._watches = tuple(watches)
        self._last_first = self._watches[::-1]
        self._admission = admission
        self._holds = holds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        open_path = self._open_paths.get(scope["path"])
        if open_path is not None and not is_head_too_large(scope):
            await open_path(scope, receive, send)
            return
        request = scope[SCOPE_KEY] = Observation(scope, send)
        self.in_flight += 1
        try:
            for watch in self._watches:
                watch.begin(request)
            admission = self._admission
            refusal = None if admission is None else admission.enter(request)
            if admission is None or refusal is not None:
                await (refusal or self._application)(scope, receive, request.send)
                return
            try:
                served = self._application(scope, receive, request.send)
                holds = self._holds
                if holds is None:
                    await served
                else:
                    await TimedSteps(served, request.operation_name, holds)
            finally:
                admission.leave(request)
        finally:
            self.in_flight -= 1
            request.seconds = perf_counter() - request.start
            for watch in self._last_first:
                watch.end(request)
            # Otherwise scope and request would reference each other, and keep everything that the request
            # made until the garbage collector looks for cycles.
            del scope[SCOPE_KEY]

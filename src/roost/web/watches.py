"""Watches of the edge: the log line, the metrics and the span of each request."""

from roost.process import tracing
from roost.process.logs.configuration import make_access_log
from roost.process.logs.request_ids import enter
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import Distribution
from roost.web.observation import Observation

LONGEST_PATH = 2048
"""Characters of path and query string in an access line. A longer one is cut."""


class RequestLines:
    """Attaches the ids of a request to all records that are logged for it."""

    def begin(self, request: Observation) -> None:
        enter((request.ids,))

    def end(self, request: Observation) -> None:
        enter(())


class AccessLines:
    """Logs one line for each request. ``milliseconds``: from its arrival to the end of its response.

    ``status`` is None if no response was begun: the client has left, or the process ends.
    """

    def __init__(self) -> None:
        self._log = make_access_log()

    def begin(self, request: Observation) -> None:
        pass

    def end(self, request: Observation) -> None:
        scope, identity = request.scope, request.identity
        path = scope["path"]
        if query := scope["query_string"]:
            path = f"{path}?{query.decode('latin-1')}"
        self._log(
            {
                "method": scope["method"],
                "path": path[:LONGEST_PATH],
                "status": request.status,
                "bytes": request.sent,
                "milliseconds": round(request.seconds * 1000, 3),
                "user": identity.user_id or None,
                "project": identity.project_id,
            }
        )


_CONTEXT = (b"traceparent", b"tracestate")


class RequestSpans:
    """Records each request as a span, in the trace of its client or else in a new one.

    Query strings are left out, because they may name resources of users.
    Source: the semantic conventions of OpenTelemetry for HTTP servers.
    """

    def begin(self, request: Observation) -> None:
        scope = request.scope
        parent = {
            name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _CONTEXT
        }
        request.span = tracing.span(
            scope["method"],
            {
                "http.request.method": scope["method"],
                "url.path": scope["path"],
                "openstack.request_id": request.ids.own,
            },
            kind="server",
            parent=parent,
        )
        request.span.__enter__()

    def end(self, request: Observation) -> None:
        if request.span is None:
            return
        values: dict[str, tracing.Attribute] = {"http.route": request.operation}
        if request.status is not None:
            values["http.response.status_code"] = request.status
        if request.ids.of_caller is not None:
            values["openstack.global_request_id"] = request.ids.of_caller
        tracing.note(values, rename=request.operation)
        if request.status is None or request.status >= 500:
            tracing.fail()
        request.span.__exit__(None, None, None)


class RequestMetrics:
    """A `roost.web.edge.Watch` that counts each request and its duration, by operation and status."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, int | None], Distribution] = {}

    def begin(self, request: Observation) -> None:
        """Do nothing: a request is counted at its end, and the edge has the number of those in flight."""

    def end(self, request: Observation) -> None:
        """Count the request."""
        key = (request.operation, request.status)
        series = self._series.get(key)
        if series is None:
            status = "none" if request.status is None else str(request.status)
            series = self._series[key] = metrics.REQUEST_DURATION.labels(request.operation, status)
        series.observe(request.seconds)

"""The part of the edge that records a span for each request."""

from roost.process import tracing
from roost.web.observation import Observation

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

"""The tracer of OpenTelemetry.

Importing this module imports OpenTelemetry's SDK, so only `roost.process.tracing` does, when tracing is on.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from roost.model.errors import OperatorError
from roost.process.tracing.tracer import Attribute, Here, Kind, TracingOptions

try:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as error:
    raise OperatorError(f"[tracing] enabled needs OpenTelemetry, install roost[tracing]: {error}") from error

import roost

_KINDS: Final = {
    "internal": trace.SpanKind.INTERNAL,
    "server": trace.SpanKind.SERVER,
    "client": trace.SpanKind.CLIENT,
}
_PROPAGATOR = TraceContextTextMapPropagator()


def open_exporter(options: TracingOptions) -> OTLPSpanExporter:
    """Return the exporter, which sends spans. It opens no connection yet.

    Raises:
        OperatorError: OpenTelemetry refuses the options or variables.
    """
    try:
        return OTLPSpanExporter(endpoint=options.endpoint)
    except ValueError as error:
        raise OperatorError(f"[tracing]: {error}") from error


def open_tracer(options: TracingOptions) -> "OpenTelemetryTracer":
    """Return a tracer that sends its spans in batches, from a thread. Raises `OperatorError`."""
    named = options.service_name or os.environ.get("OTEL_SERVICE_NAME") or "roost"
    try:
        sampler = None if options.ratio is None else ParentBasedTraceIdRatio(options.ratio)
        resource = Resource.create({"service.name": named})
        # `roost.process.tracing.stop` shuts it down, in bounded time.
        provider = TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(open_exporter(options)))
    except ValueError as error:
        raise OperatorError(f"[tracing]: {error}") from error
    return OpenTelemetryTracer(provider)


class OpenTelemetryTracer:
    """Records spans with a provider of OpenTelemetry, and stops the provider with itself.

    See `roost.process.tracing` for the methods.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("roost", roost.__version__)

    def span(
        self, name: str, kind: Kind, parent: Mapping[str, str] | None, attributes: Mapping[str, Attribute]
    ) -> AbstractContextManager[None]:
        context = None if parent is None else _PROPAGATOR.extract(parent)
        return self._recorded(name, kind=_KINDS[kind], context=context, attributes=attributes)

    def shared_span(self, name: str, places: Sequence[Here]) -> AbstractContextManager[None]:
        known = [place for place in places if place is not None and place.is_valid]
        context = trace.set_span_in_context(trace.NonRecordingSpan(known[0])) if known else None
        links = [trace.Link(place) for place in known[1:]]
        return self._recorded(name, context=context, links=links)

    def here(self) -> Here:
        return trace.get_current_span().get_span_context()

    def headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        _PROPAGATOR.inject(found)
        return found

    def note(self, rename: str | None, attributes: Mapping[str, Attribute]) -> None:
        current = trace.get_current_span()
        if rename is not None:
            current.update_name(rename)
        current.set_attributes(attributes)

    def fail(self) -> None:
        trace.get_current_span().set_status(trace.StatusCode.ERROR)

    def stop(self) -> None:
        self._provider.shutdown()

    @contextmanager
    def _recorded(self, name: str, **arguments: Any) -> Iterator[None]:
        # The text of an error may hold what a client sent, so only its type is recorded.
        started = self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False, **arguments
        )
        with started as current:
            try:
                yield
            except BaseException as error:
                current.set_attribute("error.type", type(error).__qualname__)
                current.set_status(trace.StatusCode.ERROR)
                raise

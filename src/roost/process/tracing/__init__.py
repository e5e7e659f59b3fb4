"""Traces of requests through services, scheduler, commits and conductors. They are off by default.

Rooms mark their work with `span`. Until `start` is called that does nothing, and no module of OpenTelemetry
is imported. `start` imports `roost.process.tracing.opentelemetry`, which sends the spans to a collector. The
context of a trace travels between processes as the W3C's ``traceparent``.

tracer         the interface of tracers
opentelemetry  the tracer that uses OpenTelemetry's SDK

Source: https://www.w3.org/TR/trace-context/
"""

import threading
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType

from roost.process.tracing.tracer import Attribute as Attribute
from roost.process.tracing.tracer import Here as Here
from roost.process.tracing.tracer import Kind, Tracer
from roost.process.tracing.tracer import TracingOptions as TracingOptions

STOP_SECONDS = 2.0
"""Seconds that the last spans of a process have to reach the collector."""

_NOTHING: AbstractContextManager[None] = nullcontext()
_NONE: Mapping[str, Attribute] = MappingProxyType({})
_tracer: Tracer | None = None


def start(options: TracingOptions) -> None:
    """Record spans in this process from now on, if the options say so.

    Call it in the process that does the work, after any fork: the threads that send spans do not survive one.

    Raises:
        OperatorError: OpenTelemetry is not installed, or it refuses the options.
    """
    if options.enabled:
        from roost.process.tracing.opentelemetry import open_tracer

        use(open_tracer(options))


def check(options: TracingOptions) -> None:
    """Check that `start` can work with these options in another process.

    Raises:
        OperatorError: OpenTelemetry is not installed, or it refuses the options.
    """
    if options.enabled:
        from roost.process.tracing.opentelemetry import open_exporter

        open_exporter(options)


def use(tracer: Tracer | None) -> None:
    """Record spans with this tracer from now on; None: record none."""
    global _tracer
    _tracer = tracer


def stop() -> None:
    """Record nothing from now on, and send the recorded spans. Waits for `STOP_SECONDS` at most."""
    tracer = _tracer
    use(None)
    if tracer is not None:
        # A collector that does not answer must not keep the process from ending.
        sending = threading.Thread(target=tracer.stop, name="tracing-stop", daemon=True)
        sending.start()
        sending.join(STOP_SECONDS)


def span(
    name: str,
    attributes: Mapping[str, Attribute] = _NONE,
    *,
    kind: Kind = "internal",
    parent: Mapping[str, str] | None = None,
) -> AbstractContextManager[None]:
    """Record what the context does as a span, a child of the current one. An error marks it.

    ``parent``: the headers of a request or of stored work, to whose trace the span belongs instead.
    """
    return _NOTHING if _tracer is None else _tracer.span(name, kind, parent, attributes)


def shared_span(name: str, places: Iterable[Here]) -> AbstractContextManager[None]:
    """Record work that several requests share: a child of the first one's span, with links to the others."""
    return _NOTHING if _tracer is None else _tracer.shared_span(name, list(places))


def here() -> Here:
    """Return the place of the current span."""
    return None if _tracer is None else _tracer.here()


def headers() -> dict[str, str]:
    """Return the headers that let another service, or later work, continue the current trace."""
    return {} if _tracer is None else _tracer.headers()


def note(attributes: Mapping[str, Attribute], rename: str | None = None) -> None:
    """Add attributes to the current span, and rename it if a name is given."""
    if _tracer is not None:
        _tracer.note(rename, attributes)


def fail() -> None:
    """Mark the current span as failed."""
    if _tracer is not None:
        _tracer.fail()


def is_on() -> bool:
    """Return whether spans are recorded in this process."""
    return _tracer is not None

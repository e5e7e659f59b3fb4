"""The interface of tracers, the types of their arguments, and their options in group ``tracing``."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from roost.process.options import OptionStruct, option

Kind = Literal["internal", "server", "client"]
Attribute = str | int | float | bool
Here = Any
"""The place of a span in its trace, for `shared_span`. None while tracing is off."""


class Tracer(Protocol):
    """Records spans while tracing is on. Its methods are documented at the functions of the same names."""

    def span(
        self, name: str, kind: Kind, parent: Mapping[str, str] | None, attributes: Mapping[str, Attribute]
    ) -> AbstractContextManager[None]: ...

    def shared_span(self, name: str, places: Sequence[Here]) -> AbstractContextManager[None]: ...

    def here(self) -> Here: ...

    def headers(self) -> dict[str, str]: ...

    def note(self, rename: str | None, attributes: Mapping[str, Attribute]) -> None: ...

    def fail(self) -> None: ...

    def stop(self) -> None: ...


def _or_none(text: str | None) -> str | None:
    return text or None


class TracingOptions(OptionStruct, frozen=True, group="tracing"):
    """The options of tracing. None leaves a value to OpenTelemetry's variables ``OTEL_…``."""

    enabled: bool = option(
        False,
        help="Traces of requests are sent to an OpenTelemetry collector. It needs the extra roost[tracing].",
    )
    endpoint: str | None = option(
        None,
        parse=_or_none,
        help="The URL of a collector that takes OTLP over HTTP, as in http://127.0.0.1:4318/v1/traces. "
        "Without it the variables OTEL_EXPORTER_OTLP_... say so.",
    )
    ratio: float | None = option(
        None,
        min=0.0,
        max=1.0,
        help="The share of traces that are recorded, from 0 to 1, where the client has not decided it. "
        "Without it the variables OTEL_TRACES_SAMPLER... say so, or else all are.",
    )
    service_name: str | None = option(
        None,
        parse=_or_none,
        help="The name of the service in traces. Without it OTEL_SERVICE_NAME, or else roost.",
    )

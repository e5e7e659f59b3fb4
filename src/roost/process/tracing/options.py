"""The options of tracing, in group ``tracing``."""

from oslo_config import cfg

from roost.process.tracing import TracingOptions

GROUP = "tracing"

OPTIONS = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Traces of requests are sent to an OpenTelemetry collector. It needs the extra roost[tracing].",
    ),
    cfg.StrOpt(
        "endpoint",
        help="The URL of a collector that takes OTLP over HTTP, as in http://127.0.0.1:4318/v1/traces. "
        "Without it the variables OTEL_EXPORTER_OTLP_... say so.",
    ),
    cfg.FloatOpt(
        "ratio",
        min=0.0,
        max=1.0,
        help="The share of traces that are recorded, from 0 to 1, where the client has not decided it. "
        "Without it the variables OTEL_TRACES_SAMPLER... say so, or else all are.",
    ),
    cfg.StrOpt(
        "service_name", help="The name of the service in traces. Without it OTEL_SERVICE_NAME, or else roost."
    ),
]


def tracing_options_from(conf: cfg.ConfigOpts) -> TracingOptions:
    """Return the options of tracing from a configuration where they are registered.

    Raises:
        cfg.Error: A value has not the type of its option.
    """
    group = conf[GROUP]
    return TracingOptions(group.enabled, group.endpoint or None, group.ratio, group.service_name or None)

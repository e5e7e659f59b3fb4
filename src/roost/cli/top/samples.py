"""Samples: the metrics of a service at one moment, as data."""

from collections.abc import Mapping

import msgspec
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


class Sample(msgspec.Struct, frozen=True):
    """All metrics of a service, as its metrics address has them.

    ``at``: seconds of a monotonic clock. ``values``: the value of each time series, by the name of the metric
    and its labels.
    """

    at: float
    values: Mapping[str, Mapping[Labels, float]]

    def series(self, name: str) -> Mapping[Labels, float]:
        """Return the time series of a metric by their labels; empty if the service does not have it."""
        return self.values.get(name, {})

    def total(self, name: str) -> float | None:
        """Return the sum of a metric's time series; None if the service does not have it."""
        series = self.series(name)
        return sum(series.values()) if series else None


def parse_sample(text: str, at: float) -> Sample:
    """Parse a response of the metrics address, in Prometheus' text format.

    Raises:
        ValueError: the text is not in this format.
    """
    values: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            values.setdefault(each.name, {})[frozenset(each.labels.items())] = each.value
    return Sample(at, values)


def label(labels: Labels, name: str) -> str:
    """Return the value of a label; empty if the time series does not have it."""
    return dict(labels).get(name, "")

"""Samples of a service's metrics, and the figures computed from two: rates, latencies and levels."""

import math
from collections import defaultdict
from collections.abc import Mapping

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from roost.process.metrics import catalogue

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


REQUESTS = catalogue.REQUEST_DURATION.name
DECISIONS = catalogue.DECISIONS.name
REFUSALS = catalogue.REFUSALS.name
DECISION_SECONDS = catalogue.DECISION_DURATION.name
OVERLOAD = catalogue.OVERLOAD.name
HEALTH = catalogue.HEALTH_CHECKS.name
LAG_COMMITS = catalogue.LAG_COMMITS.name
LAG_SECONDS = catalogue.LAG_SECONDS.name
COMMITS = catalogue.COMMITS.name
OUTRUNS = catalogue.OUTRUNS.name
RELOADS = catalogue.RELOADS.name
VERSION = catalogue.VERSION.name
WAITING = catalogue.WAITING_COMMANDS.name
IN_FLIGHT = catalogue.IN_FLIGHT.name
STARTED = catalogue.START_TIME.name
CPU = catalogue.CPU.name
MEMORY = catalogue.RESIDENT_MEMORY.name


class OperationFigures(msgspec.Struct, frozen=True):
    """The requests of one operation between two samples.

    ``rate`` and ``failed`` (status 5xx): requests a second. ``p50`` and ``p99``: seconds; None without a
    request.
    """

    operation: str
    rate: float
    failed: float
    p50: float | None
    p99: float | None


class ProcessFigures(msgspec.Struct, frozen=True):
    """A process of the service. ``cpu``: processors in use. ``memory``: bytes. ``started``: epoch seconds."""

    process: str
    started: float | None
    cpu: float | None
    memory: float | None


class TopFigures(msgspec.Struct, frozen=True):
    """The rates of a service between two samples, and its state at the second one.

    ``seconds``: time between the samples. Rates are per second: ``decisions`` by result, ``refusals`` by
    cause, ``overload`` (requests refused because a process is at a limit) by limit. ``decision_p50`` and
    ``decision_p99``: seconds. ``lag_commits`` and ``lag_seconds``: of the process that is furthest behind.
    ``failing``: the readiness checks that do not pass. A number is None if the service has no such metric.
    """

    seconds: float
    operations: list[OperationFigures]
    decisions: dict[str, float]
    decision_p50: float | None
    decision_p99: float | None
    refusals: dict[str, float]
    overload: dict[str, float]
    failing: list[str]
    lag_commits: float | None
    lag_seconds: float | None
    commits: float | None
    outruns: float | None
    reloads: float | None
    version: float | None
    waiting: float | None
    in_flight: float | None
    processes: list[ProcessFigures]


def figures(before: Sample, now: Sample) -> TopFigures:
    """Return the figures between two samples of one service; ``before`` is the earlier one."""
    seconds = now.at - before.at
    started = {label(each, "process"): value for each, value in now.series(STARTED).items()}
    cpu = _rates(before, now, CPU, "process")
    decided: defaultdict[float, float] = defaultdict(float)
    for labels, grown in _growth(before, now, f"{DECISION_SECONDS}_bucket").items():
        decided[float(label(labels, "le"))] += grown
    memory = {label(each, "process"): value for each, value in now.series(MEMORY).items()}
    return TopFigures(
        seconds=seconds,
        operations=_operations(before, now),
        decisions=_rates(before, now, DECISIONS, "result"),
        decision_p50=quantile(0.5, decided),
        decision_p99=quantile(0.99, decided),
        refusals=_rates(before, now, REFUSALS, "cause"),
        overload=_rates(before, now, OVERLOAD, "cause"),
        failing=sorted(label(each, "check") for each, passed in now.series(HEALTH).items() if not passed),
        lag_commits=now.total(LAG_COMMITS),
        lag_seconds=now.total(LAG_SECONDS),
        commits=_rate(before, now, COMMITS),
        outruns=_rate(before, now, OUTRUNS),
        reloads=_rate(before, now, RELOADS),
        version=now.total(VERSION),
        waiting=now.total(WAITING),
        in_flight=now.total(IN_FLIGHT),
        processes=[
            ProcessFigures(name, started.get(name), cpu.get(name), memory.get(name))
            for name in sorted(
                started.keys() | cpu.keys() | memory.keys(), key=lambda name: (len(name), name)
            )
        ],
    )


def quantile(share: float, buckets: Mapping[float, float]) -> float | None:
    """Return the quantile of a histogram, linear inside of a bucket; None for an empty one.

    ``buckets``: upper bound -> number of values up to it. Beyond the last finite bound it is this bound.

    Source: ``histogram_quantile`` of Prometheus.
    """
    bounds = sorted(buckets)
    if not bounds or not buckets[bounds[-1]]:
        return None
    wanted = share * buckets[bounds[-1]]
    below, lower = 0.0, 0.0
    for bound in bounds:
        if buckets[bound] >= wanted:
            if math.isinf(bound):
                return lower
            inside = buckets[bound] - below
            return lower + (bound - lower) * ((wanted - below) / inside if inside else 1.0)
        below, lower = buckets[bound], bound
    return lower


def _operations(before: Sample, now: Sample) -> list[OperationFigures]:
    seconds = now.at - before.at
    counts: defaultdict[str, float] = defaultdict(float)
    failed: defaultdict[str, float] = defaultdict(float)
    buckets: defaultdict[str, defaultdict[float, float]] = defaultdict(lambda: defaultdict(float))
    for labels, grown in _growth(before, now, f"{REQUESTS}_count").items():
        operation = label(labels, "operation")
        counts[operation] += grown
        if label(labels, "status").startswith("5"):
            failed[operation] += grown
    for labels, grown in _growth(before, now, f"{REQUESTS}_bucket").items():
        buckets[label(labels, "operation")][float(label(labels, "le"))] += grown
    found = [
        OperationFigures(
            operation,
            count / seconds,
            failed[operation] / seconds,
            quantile(0.5, buckets[operation]),
            quantile(0.99, buckets[operation]),
        )
        for operation, count in counts.items()
        if count
    ]
    return sorted(found, key=lambda each: (-each.rate, each.operation))


def _growth(before: Sample, now: Sample, name: str) -> dict[Labels, float]:
    """Return the growth of each time series of a counter. A smaller value means a restart from 0."""
    old = before.series(name)
    grown = {}
    for labels, value in now.series(name).items():
        start = old.get(labels, 0.0)
        grown[labels] = value - start if value >= start else value
    return grown


def _rates(before: Sample, now: Sample, name: str, by: str) -> dict[str, float]:
    """Return the growth of a counter a second, by the value of a label."""
    rates: defaultdict[str, float] = defaultdict(float)
    for labels, grown in _growth(before, now, name).items():
        rates[label(labels, by)] += grown / (now.at - before.at)
    return dict(sorted(rates.items()))


def _rate(before: Sample, now: Sample, name: str) -> float | None:
    grown = _growth(before, now, name)
    return sum(grown.values()) / (now.at - before.at) if grown else None

"""What agents and drivers report, cleaned before it reaches the cell's database.

Texts are cleaned and cut. Names say which host or instance is meant and are left alone: a report with a name
that cannot be stored is dropped, with a warning.
"""

import math
from collections.abc import Iterable

import msgspec
import structlog

from roost.model.host import HostAggregate, HostReport
from roost.model.instance import BuildResult
from roost.model.text import clean_text, is_storable
from roost.model.vocabulary import MAX_INT

MAX_METRICS = 1_000
"""Metrics of one host; of more, those with the first names are kept."""
MAX_HOST = 255
MAX_UUID = 36

_log = structlog.get_logger()


def clean_results(results: Iterable[BuildResult]) -> list[BuildResult]:
    """The results of builds, their reasons cleaned, without those whose names cannot be stored."""
    kept = []
    for result in results:
        if is_storable(result.instance, MAX_UUID) and is_storable(result.host, MAX_HOST):
            failure = None if result.failure is None else clean_text(result.failure)
            kept.append(msgspec.structs.replace(result, failure=failure))
        else:
            _log.warning("the result of a build was dropped: bad name", result=repr(result)[:500])
    return kept


def clean_reports(reports: Iterable[HostReport]) -> list[HostReport]:
    """The reports of hosts, their texts and numbers cleaned, without those whose names cannot be stored."""
    kept = []
    for report in reports:
        named = is_storable(report.host, MAX_HOST) and is_storable(report.node, MAX_UUID)
        if named and math.isfinite(report.last_seen):
            kept.append(_clean_report(report))
        else:
            _log.warning("the report of a host was dropped: bad name or time", report=repr(report)[:500])
    return kept


def clean_metrics(metrics: dict[str, object]) -> dict[str, float]:
    """The metrics that are finite numbers."""
    numbers = {
        clean_text(name, MAX_HOST): float(value)
        for name, value in metrics.items()
        if isinstance(value, int | float) and abs(value) <= MAX_FLOAT
    }
    if len(numbers) > MAX_METRICS:
        numbers = {name: numbers[name] for name in sorted(numbers)[:MAX_METRICS]}
    return numbers


MAX_FLOAT = 1.7e308
"""No finite number of a metric is larger; comparing with it also sorts NaN and infinity out."""


def _clean_report(report: HostReport) -> HostReport:
    return msgspec.structs.replace(
        report,
        enabled=bool(report.enabled),
        failed_builds=min(max(report.failed_builds, 0), MAX_INT),
        metrics=clean_metrics({**report.metrics}),
        aggregates=tuple(
            HostAggregate(
                clean_text(each.uuid, MAX_HOST),
                clean_text(each.name, MAX_HOST),
                {clean_text(key): clean_text(value) for key, value in each.metadata.items()},
            )
            for each in report.aggregates
        ),
    )

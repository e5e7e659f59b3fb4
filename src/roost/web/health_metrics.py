"""Readiness as metrics, for which the checks also run without probes."""

import asyncio

from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import counting
from roost.web.health import Health

CHECK_SECONDS = 5.0
"""Seconds between two reports."""


async def keep_checking(health: Health) -> None:
    """Set the metrics of readiness until cancelled; return at once if metrics are not counted."""
    while counting():
        report = await health.readiness()
        passed: dict[str, bool] = {}
        for check in report.checks:
            # The label is the first word: `cell NAME` has one for all names, `api database` is `api`.
            kind = check.name.partition(" ")[0]
            passed[kind] = passed.get(kind, True) and check.passed
        for kind, value in passed.items():
            metrics.HEALTH_CHECKS.labels(kind).set(value)
        await asyncio.sleep(CHECK_SECONDS)

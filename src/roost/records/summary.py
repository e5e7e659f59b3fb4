"""Counts of the runs and attempts of a short time: for pages that say how a cloud does now."""

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.record import FAILED
from roost.records.tables import attempts, runs


class RunSummary(msgspec.Struct, frozen=True):
    """The runs since a time. Durations are in seconds, None without runs.

    ``more``: there were more, and these are the newest. ``refused``: the number of refused runs by reason.
    ``median`` and ``slow``: durations that half and 95 % of the runs did not exceed.
    """

    runs: int
    more: bool
    refused: Mapping[str, int]
    median: float | None = None
    slow: float | None = None


class FailedBuilds(msgspec.Struct, frozen=True):
    """The number of failed builds on a node since a time. ``node``: empty in records of early versions."""

    host: str
    node: str
    number: int


def read_failed_builds(connection: Connection, since: float) -> list[FailedBuilds]:
    """Count the builds that began at ``since`` (seconds since the epoch) or later and failed, by node.

    Few attempts fail, and the index by result finds them: those of a month are read faster than all of a day.
    """
    query = (
        sa.select(attempts.c.host, attempts.c.node, sa.func.count())
        .where(attempts.c.result == FAILED, attempts.c.at >= since)
        .group_by(attempts.c.host, attempts.c.node)
    )
    return [FailedBuilds(host, node, number) for host, node, number in connection.execute(query)]


def read_summary(connection: Connection, since: float, most: int) -> RunSummary:
    """Count the runs that started at ``since`` (seconds since the epoch) or later, the newest ``most``."""
    newest = connection.scalar(sa.select(sa.func.max(runs.c.number))) or 0
    query = (
        sa.select(runs.c.finished_at - runs.c.started_at, runs.c.refusal)
        .where(runs.c.number > newest - most, runs.c.started_at >= since)
        .order_by(runs.c.number)
    )
    found = connection.execute(query).all()
    refused: dict[str, int] = {}
    for _, refusal in found:
        if refusal is not None:
            refused[refusal] = refused.get(refusal, 0) + 1
    durations = sorted(max(0.0, seconds) for seconds, _ in found)
    return RunSummary(
        len(found), len(found) >= most, refused, _quantile(durations, 0.5), _quantile(durations, 0.95)
    )


def read_minutes(connection: Connection, since: float, most: int) -> list[tuple[int, int, int]]:
    """Count the runs of each minute; see `roost.records.records.CountableRecords.by_minute`."""
    newest = connection.scalar(sa.select(sa.func.max(runs.c.number))) or 0
    minute = sa.cast(sa.func.floor(runs.c.started_at / 60), sa.BigInteger)
    query = (
        sa.select(minute.label("minute"), sa.func.count(), sa.func.count(runs.c.refusal))
        .where(runs.c.number > newest - most, runs.c.started_at >= since)
        .group_by("minute")
        .order_by("minute")
    )
    return [(at, count, refused) for at, count, refused in connection.execute(query)]


def _quantile(ascending: list[float], share: float) -> float | None:
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))] if ascending else None

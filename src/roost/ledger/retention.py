"""CommitRetention: limits of age and number of kept commits, and the task that removes older ones."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

from roost.ledger.ledger import Ledger
from roost.process.options import OptionStruct, option
from roost.storage import StorageError

DAY = 86_400.0
PAUSE = 0.05
"""Seconds between two transactions that remove commits, in which other writes run."""

_LOG = structlog.get_logger()


class CommitRetention(OptionStruct, frozen=True, group="ledger"):
    """The commits that are kept: the newest ``commits`` that are at most ``days`` old.

    ``interval``: seconds between two removals of all others; 0: they are not removed.
    """

    commits: int = option(
        16_000_000,  # a week at 25 commits a second
        name="keep_commits",
        min=1,
        help="The newest commits are kept, up to this number. A follower of the change feed that is further "
        "behind, and a replay of an older decision, miss removed commits.",
    )
    days: float = option(
        7.0,
        name="keep_days",
        min=0.0,
        help="Commits older than this many days are removed, except the newest commit.",
    )
    interval: float = option(
        60.0,
        name="trim_interval",
        min=0.0,
        help="Old commits are removed every so many seconds. With 0 only 'roost db trim' removes them.",
    )


async def keep_trimming(
    ledger: Ledger,
    retention: CommitRetention,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Remove old commits every ``retention.interval`` seconds, until cancelled.

    Several processes may do this on one database. The intervals vary at random by half, so that mostly one
    process finds commits to remove. ``clock``: seconds since the epoch.
    """
    if not retention.interval:
        return
    while True:
        await sleep(retention.interval * random.uniform(0.5, 1.5))
        try:
            removed = await ledger.trim(retention.commits, clock() - retention.days * DAY, PAUSE)
        except StorageError as error:
            _LOG.warning("old commits could not be removed; the next interval tries again", error=str(error))
            continue
        except Exception:
            # If the task ended, the table would grow until the disk is full, long after the defect showed.
            _LOG.exception("a defect keeps old commits from being removed; the next interval tries again")
            continue
        if removed:
            _LOG.info("old commits are removed", commits=removed)

"""The time limits of a cell: builds that no host confirms, deletions on hosts that do not answer.

A conductor measures by its own monotonic clock how long it has observed something unchanged. Clocks of
different processes are not compared, and times without observation do not count.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from roost.model.instance import AttemptKey
from roost.model.record import Attempt
from roost.process.context import Context, Work
from roost.process.options import OptionStruct, option
from roost.state.cell_database.arrivals import trim_fences
from roost.state.cell_database.building import fail_attempts
from roost.state.cell_database.conductor_work import work_topic
from roost.state.cell_database.deletions import end_deletions
from roost.state.cell_database.history import PRUNED_AT_ONCE, prune_past
from roost.state.cell_database.host_work import attempts_assigned, deletions_awaited
from roost.state.cell_database.move_ends import (
    end_restarts,
    fail_targets,
    restarts_awaited,
    targets_unconfirmed,
)
from roost.state.cell_database.moves import PRUNED_AT_ONCE as MOVES_AT_ONCE
from roost.state.cell_database.moves import confirm_waiting, prune_moves
from roost.state.leases import Stamp, Standstill
from roost.storage import StorageError

T = TypeVar("T")

HOUR = 3_600.0
DAY = 24 * HOUR

CONFIRM_SECONDS = 60.0
"""Seconds between two looks for moves that are to be confirmed, at most."""

AT_ONCE = 500
"""Attempts that one transaction ends at most. All attempts of a large outage would exceed the time limit of a
write, at every look."""

LOOKS = 20
"""Looks per time limit: work is ended at most one such part of its limit too late."""


class TimeLimits(OptionStruct, frozen=True, kw_only=True, group="conductor"):
    """The time limits of a cell, in seconds and days."""

    build_seconds: float = option(
        600.0,
        name="build_seconds_limit",
        min=1.0,
        help="Seconds in which a host must confirm that it starts an instance that is assigned to it. After "
        "that the attempt has failed, and the next alternate is used.",
    )
    destroy_seconds: float = option(
        600.0,
        name="destroy_seconds_limit",
        min=1.0,
        help="Seconds without a sign of life of its host after which an instance that is deleted is freed "
        "without it. The host is not up again before it has destroyed what it has of the instance. After as "
        "long a failed move ends whose source is to start the guest again.",
    )
    confirm_hours: float = option(
        24.0,
        min=0.0,
        help="Hours after which a move that waits to be confirmed or reverted is confirmed by itself; "
        "0: never.",
    )
    tombstone_days: float = option(
        7.0,
        min=0.01,
        help="Days for which a cell knows that an instance was deleted, so that a conductor that was stopped "
        "in the middle of its request cannot bring it back.",
    )
    history_days: float = option(
        30.0, min=0.01, help="Days for which the history of an instance is kept after its end."
    )


async def limit_builds(context: Context, cell: str, limits: TimeLimits) -> None:
    """End attempts that no host has confirmed in time, for ever. Their instances go to the next alternate."""
    reason = f"the host has not confirmed the build within {limits.build_seconds:g} seconds"

    def end(keys: tuple[AttemptKey, ...]) -> Work[list[Attempt]]:
        return fail_attempts(keys, reason, context.clock(), cell)

    await _limit_attempts(
        context, cell, limits, attempts_assigned(), end, "builds were not confirmed in time"
    )


async def limit_moves(context: Context, cell: str, limits: TimeLimits) -> None:
    """End attempts of moves that no target has confirmed in time, for ever."""

    def end(keys: tuple[AttemptKey, ...]) -> Work[list[Attempt]]:
        return fail_targets(keys, context.clock())

    await _limit_attempts(
        context, cell, limits, targets_unconfirmed(), end, "targets of moves were not confirmed in time"
    )


async def confirm_moves(context: Context, cell: str, limits: TimeLimits) -> None:
    """Confirm moves that nobody has confirmed or reverted for long, for ever."""
    while limits.confirm_hours:
        now = context.clock()
        confirmed = await _written(context, cell, confirm_waiting(now - limits.confirm_hours * HOUR, now))
        if confirmed:
            _tell(context, cell, "moves were confirmed by themselves", len(confirmed))
        await context.sleep(min(limits.confirm_hours * HOUR / LOOKS, CONFIRM_SECONDS))


async def _limit_attempts(
    context: Context,
    cell: str,
    limits: TimeLimits,
    read: Work[Mapping[AttemptKey, Stamp]],
    end: Callable[[tuple[AttemptKey, ...]], Work[list[Attempt]]],
    event: str,
) -> None:
    """End attempts that stand still for longer than a build may take, for ever."""
    standing: Standstill[AttemptKey] = _standstill(limits.build_seconds)
    while True:
        overdue = await _overdue(context, cell, read, limits.build_seconds, standing)
        for some in _batches(overdue):
            ended = await _written(context, cell, end(some))
            if ended is None:
                break
            if ended:
                context.record((), tuple(ended))
                _tell(context, cell, event, len(ended))
        await context.sleep(limits.build_seconds / LOOKS)


async def limit_deletions(context: Context, cell: str, limits: TimeLimits) -> None:
    """Let deletions go on whose hosts show no sign of life, for ever. The orders to destroy stay."""
    await _limit_silence(
        context, cell, limits, deletions_awaited(), end_deletions, "deletions go on without their hosts"
    )


async def limit_restarts(context: Context, cell: str, limits: TimeLimits) -> None:
    """End moves whose sources are to start the guest again, and show no sign of life, for ever."""
    await _limit_silence(
        context, cell, limits, restarts_awaited(), end_restarts, "moves ended without their sources"
    )


async def _limit_silence(
    context: Context,
    cell: str,
    limits: TimeLimits,
    read: Work[Mapping[AttemptKey, Stamp]],
    end: Callable[[tuple[AttemptKey, ...], float], Work[list[AttemptKey]]],
    event: str,
) -> None:
    """End what waits for hosts that show no sign of life for as long as a deletion waits, for ever.

    ``read``: what waits, each with the stamp of the session of its host.
    """
    standing: Standstill[AttemptKey] = _standstill(limits.destroy_seconds)
    while True:
        overdue = await _overdue(context, cell, read, limits.destroy_seconds, standing)
        for some in _batches(overdue):
            ended = await _written(context, cell, end(some, context.clock()))
            if ended is None:
                break
            if ended:
                _tell(context, cell, event, len(ended))
        await context.sleep(limits.destroy_seconds / LOOKS)


async def trim_past(context: Context, cell: str, limits: TimeLimits) -> None:
    """Remove tombstones and histories of instances that were deleted long ago, once an hour, for ever."""
    while True:
        now = context.clock()
        await _written(context, cell, trim_fences(now - limits.tombstone_days * DAY))
        of_moves = prune_moves(now - limits.history_days * DAY)
        while await _written(context, cell, of_moves) == MOVES_AT_ONCE:
            pass
        prune = prune_past(now - limits.history_days * DAY)
        while await _written(context, cell, prune) == PRUNED_AT_ONCE:
            pass
        await context.sleep(3600.0)


def _standstill(limit: float) -> Standstill[AttemptKey]:
    # Two looks may fail to come in time on a busy machine.
    return Standstill(limit / LOOKS * 3)


async def _overdue(
    context: Context,
    cell: str,
    read: Work[Mapping[AttemptKey, Stamp]],
    limit: float,
    standing: Standstill[AttemptKey],
) -> tuple[AttemptKey, ...]:
    """Look once, and return the attempts that have been unchanged for longer than the limit."""
    began = context.monotonic()
    try:
        found = await context.read(f"cell/{cell}", read)
    except StorageError as error:
        standing.interrupted()
        context.log("a cell cannot be watched", {"cell": cell, "error": str(error)}, "warning")
        return ()
    standing.look(found, began, context.monotonic())
    return tuple(key for key in found if standing.still(key) >= limit)


def _batches(keys: tuple[AttemptKey, ...]) -> Iterator[tuple[AttemptKey, ...]]:
    return (keys[first : first + AT_ONCE] for first in range(0, len(keys), AT_ONCE))


async def _written(context: Context, cell: str, work: Work[T]) -> T | None:
    """Return the result of a write; None, with a log line, if it fails: the next look tries it again."""
    try:
        return await context.write(f"cell/{cell}", work)
    except StorageError as error:
        context.log("a cell cannot be written", {"cell": cell, "error": str(error)}, "warning")
        return None


def _tell(context: Context, cell: str, event: str, number: int) -> None:
    context.log(event, {"cell": cell, "number": number}, "warning")
    context.wake(work_topic(cell))

"""The stays of an instance on hosts, by its history: where it was at which time."""

from collections.abc import Iterator, Sequence

import msgspec

from roost.conductor.history.types import HistoryEvent, InstanceHistory


class HostStay(msgspec.Struct, frozen=True, kw_only=True):
    """A stay of an instance on a host. Times are seconds since the epoch.

    ``began``: when the host was assigned. ``ran``: when its guest was built, None if it never was.
    ``ended``: None: it is still there. ``result``: ``built``, ``failed``, ``abandoned``; None while it is
    built. ``run``: the run of the scheduler that chose the host. A project sees no host, node and cell.
    """

    began: float
    ran: float | None = None
    ended: float | None = None
    result: str | None = None
    attempt: int | None = None
    host: str | None = None
    node: str | None = None
    cell: str | None = None
    run: str | None = None
    reason: str | None = None

    def covers(self, at: float) -> bool:
        """Return whether the instance was on the host at a time."""
        return self.began <= at and (self.ended is None or at < self.ended)


def stays_of(history: InstanceHistory) -> tuple[HostStay, ...]:
    """Return the stays of an instance, the first one first."""
    events = list(_in_order(history))
    builds = [each for each in events if each.name in ("build", "move")]
    return tuple(_stay(each, events, history) for each in builds)


def stay_at(stays: Sequence[HostStay], at: float) -> HostStay | None:
    """Return the stay that covers a time, None if the instance was on no host."""
    return next((each for each in reversed(stays) if each.covers(at)), None)


def _in_order(history: InstanceHistory) -> Iterator[HistoryEvent]:
    for action in history.actions:
        yield from action.events


_RAN = ("built", "moved")
"""The results of attempts after which the guest ran."""


def _is_end(event: HistoryEvent, build: HistoryEvent) -> bool:
    """Return whether an event ends the stay that began with a build or a move."""
    if event.name == "move":
        return event is not build and event.result == "moved" and _ended(event) > _ended(build)
    return event.name in ("destroy", "give_up") and event.started_at >= build.started_at


def _ended(event: HistoryEvent) -> float:
    return event.started_at if event.finished_at is None else event.finished_at


def _stay(build: HistoryEvent, events: Sequence[HistoryEvent], history: InstanceHistory) -> HostStay:
    built = build.result in _RAN
    ended = None if built or build.result is None else build.finished_at
    if build.result != "failed":
        # A guest that was built, or may have been, is there until it moves, is destroyed or given up.
        ends = [each.finished_at for each in events if _is_end(each, build)]
        if ends:
            ended = ends[0]
        elif history.state == "deleted" and ended is None:
            ended = max((each.finished_at or each.started_at for each in events), default=None)
    return HostStay(
        began=build.started_at,
        ran=build.finished_at if built else None,
        ended=ended,
        result="built" if built else build.result,
        attempt=build.attempt,
        host=build.host,
        node=build.node,
        cell=build.cell,
        run=build.run,
        reason=build.reason,
    )

"""The merge of several logs: by time, each in its own order, up to the time that all have reached."""

import math
from collections.abc import Sequence
from heapq import merge
from itertools import accumulate
from typing import NamedTuple

from roost.state.api_database.event_types import CloudEvent


class LogPart(NamedTuple):
    """The events of one log that were read, with their positions, in order.

    ``end``: the position up to which the log was read; ``last``: the last position of the log. ``until``: the
    time of the event at ``end``, in seconds since the epoch; None if that is not known.
    """

    events: Sequence[tuple[int, CloudEvent]]
    end: int
    last: int
    until: float | None = None

    @property
    def times(self) -> list[float]:
        """The time of each event, at least that of the one before it: the clocks of processes differ."""
        return list(accumulate((event.at for _, event in self.events), max))

    @property
    def told_until(self) -> float:
        """The earliest time of which this log may have unread events; infinite if it was read to its end."""
        if self.end >= self.last or self.until is None:
            return math.inf
        return max([self.until, *self.times[-1:]])


class Merged(NamedTuple):
    """Events in order, and the position of a reader after them in each log.

    ``more``: events that follow are there already.
    """

    events: list[CloudEvent]
    positions: list[int]
    more: bool


def merged(parts: Sequence[LogPart], most: int) -> Merged:
    """Return up to ``most`` events of some logs, by time. A log's events keep their order.

    Events after the time up to which some log was read wait until that log is read on. The log that was read
    to the earliest time is taken whole, so a reader always makes progress.
    """
    until = min((part.told_until for part in parts), default=math.inf)
    ordered = merge(
        *(
            [(time, number, event) for time, (_, event) in zip(part.times, part.events, strict=True)]
            for number, part in enumerate(parts)
        ),
        key=lambda each: each[0],
    )
    events: list[CloudEvent] = []
    taken = [0] * len(parts)
    for time, number, event in ordered:
        if time > until or len(events) == most:
            break
        events.append(event)
        taken[number] += 1
    positions = [
        part.events[count][0] - 1 if count < len(part.events) else part.end
        for part, count in zip(parts, taken, strict=True)
    ]
    more = any(position < part.last for position, part in zip(positions, parts, strict=True))
    return Merged(events, positions, more)

"""The logs of several databases as one: by time, each in its own order, up to what all of them have told."""

import math
from collections.abc import Sequence
from heapq import merge
from itertools import accumulate
from typing import NamedTuple

from roost.state.api_database.event_types import CloudEvent


class LogPart(NamedTuple):
    """The events of one log that a reader has got, with their positions, in order.

    ``end``: the position up to which all was looked through; ``last``: that of the log. ``until``: when what
    is at ``end`` happened, in seconds since the epoch; None if that is not known.
    """

    events: Sequence[tuple[int, CloudEvent]]
    end: int
    last: int
    until: float | None = None

    @property
    def times(self) -> list[float]:
        """The time of each event, none before that of an earlier one: clocks of processes differ."""
        return list(accumulate((event.at for _, event in self.events), max))

    @property
    def told_until(self) -> float:
        """The time of which this log may have more."""
        if self.end >= self.last or self.until is None:
            return math.inf
        return max([self.until, *self.times[-1:]])


class Merged(NamedTuple):
    """Events in order, and the position that a reader of them has in each log. ``more``: there is something
    already that follows."""

    events: list[CloudEvent]
    positions: list[int]
    more: bool


def merged(parts: Sequence[LogPart], most: int) -> Merged:
    """Up to ``most`` events of some logs, by time. A log's events keep their order.

    What happened after the time up to which a log was looked through waits until that one is read on. The log
    of which this is true first is taken whole, so a reader always gets on.
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

"""The fences of agents: within which time an agent that hears nothing of its cell has stopped its guests.

Two clocks measure, and neither is compared with the other. The agent counts from the moment before it sent
the last message of which the cell's database has a trace: the counter or the epoch of its session. An
observer counts from the end of the first look that has found that trace, so later. Both therefore agree that
after `needed_silence` no guest runs, unless the clock of the host is slower than `DRIFT` allows.
"""

from typing import Final

import msgspec

DRIFT: Final = 0.01
"""The share of the time by which the clock of a host may be slower than that of an observer."""

MARGIN_SECONDS: Final = 5.0
"""Seconds that are added to the time of a fence, for the steps of a process that has to wait its turn."""


class Fence(msgspec.Struct, frozen=True):
    """The fence of an agent.

    ``seconds``: without an answer of its cell for so long, it stops its guests. ``stop_seconds``: the time in
    which they are stopped then. ``guarded``: a watchdog resets the machine if they are not, also if the agent
    has ended or stands still. Without one such an agent stops nothing.
    """

    seconds: float
    stop_seconds: float
    guarded: bool = False


def needed_silence(fence: Fence) -> float:
    """Return the seconds of observed silence after which no guest of a host with a fence runs."""
    return (fence.seconds + fence.stop_seconds) * (1.0 + DRIFT) + MARGIN_SECONDS

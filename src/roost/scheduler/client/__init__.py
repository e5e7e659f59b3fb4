"""A client of a scheduler over HTTP, for conductors whose process has none.

http    `HttpScheduler`: hosts for instances, and the use of alternates, with tokens and safe repetitions
errors  the errors that the responses of a scheduler mean
"""

from roost.scheduler.client.http import HttpScheduler

__all__ = ["HttpScheduler"]

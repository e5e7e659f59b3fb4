"""A client of a scheduler over HTTP, for conductors whose process has no scheduler.

http    `HttpScheduler`: hosts for instances, and the use of alternates, with tokens and safe repetitions
"""

from roost.scheduler.client.http import HttpScheduler

__all__ = ["HttpScheduler"]

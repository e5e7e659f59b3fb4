"""A question: everything that one run of the scheduler decides upon."""

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.options import SchedulerOptions


@dataclass(frozen=True, slots=True)
class Question:
    """Place ``instances`` (consumer uuids), each with ``num_alternates`` alternates.

    ``run`` is the id of the run. They are placed in order, until one cannot be; if fewer than ``min_count``
    are placed then, none is. ``now``: seconds since the epoch, for judging heartbeats. ``seed`` is that of
    the run's own random numbers. The run ends when ``monotonic`` (a clock, in seconds) reaches ``deadline``.
    """

    run: str
    spec: RequestSpec
    query: CandidateQuery
    instances: tuple[str, ...]
    num_alternates: int
    min_count: int
    now: float
    options: SchedulerOptions
    seed: int = 0
    deadline: float = math.inf
    monotonic: Callable[[], float] = time.monotonic

    @property
    def oldest_heartbeat(self) -> float:
        """Who was not seen since is down; seconds since the epoch."""
        return self.now - self.options.service_down_time

    def expired(self) -> bool:
        """Whether the time of the run is over."""
        return self.deadline != math.inf and self.monotonic() >= self.deadline


@dataclass(slots=True)
class Progress:
    """What a run has done so far that filters may look at.

    ``members``: host index -> members of the request's server group there, those placed by this run too;
    only hosts that have any, and empty without a group.
    """

    members: Counter[int] = field(default_factory=Counter)

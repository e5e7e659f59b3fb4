"""A question: everything that one run of the scheduler decides upon."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np

from roost.fleet.columns import Float64
from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.errors import NewerWord
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.operator_words import Taken
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.places import Place


class SchedulingRequest(msgspec.Struct, frozen=True):
    """Place ``instances`` (consumer uuids), each with ``num_alternates`` alternates.

    ``query`` and ``fallbacks`` are what placement is asked, see
    `roost.scheduler.request.query.PlacementQueries`, as are ``limit`` and ``places``. ``run`` is the id of
    the run. They are placed in order, until one cannot be; if fewer than ``min_count`` are placed then, none
    is. ``now``: seconds since the epoch, for judging heartbeats. ``seed`` is that of the run's own random
    numbers. The run ends when ``monotonic`` (a clock, in seconds) reaches ``deadline``. ``generations`` are
    those of the instances that hold something already, which the run replaces. ``word``: what operators had
    said when the queries were made, as far as the node table had it; None: it is not judged.
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
    fallbacks: tuple[CandidateQuery, ...] = ()
    limit: int | None = None
    places: tuple[Place, ...] = ()
    deadline: float = math.inf
    monotonic: Callable[[], float] = time.monotonic
    generations: Mapping[str, int] = {}
    word: Taken | None = None

    def check_word(self, announced: int) -> None:
        """Raises `NewerWord` if another word than the question knows is announced on the ledger's state."""
        if self.word is not None and self.word.mark != announced:
            raise NewerWord(announced)

    @property
    def queries(self) -> tuple[CandidateQuery, ...]:
        """The query, then the fallbacks."""
        return (self.query, *self.fallbacks)

    @property
    def oldest_heartbeat(self) -> float:
        """Who was not seen since is down; seconds since the epoch."""
        return self.now - self.options.service_down_time

    def expired(self) -> bool:
        """Whether the time of the run is over."""
        return self.deadline != math.inf and self.monotonic() >= self.deadline


@dataclass(slots=True)
class GroupPlacement:
    """What a run has done so far that filters may look at.

    ``members``: host index -> members of the request's server group there, those placed by this run too;
    only hosts that have any, and empty without a group. Members on hosts that the table lacks count under
    `roost.scheduler.pool.group_members.ELSEWHERE`. ``present``: hosts that an instance of the request is on
    already, as a member of the group.
    """

    members: Counter[int] = field(default_factory=Counter)
    present: frozenset[int] = frozenset()

    def members_on(self, index: Indexes) -> Float64:
        """The members on each of some hosts of the table: float64[len(index)]."""
        if not self.members:
            return np.zeros(len(index))
        hosts = np.fromiter(self.members.keys(), dtype=np.intp, count=len(self.members))
        numbers = np.fromiter(self.members.values(), dtype=np.float64, count=len(self.members))
        order = np.argsort(hosts)
        hosts, numbers = hosts[order], numbers[order]
        places = np.minimum(np.searchsorted(hosts, index), len(hosts) - 1)
        found: Float64 = np.where(hosts[places] == index, numbers[places], 0.0)
        return found

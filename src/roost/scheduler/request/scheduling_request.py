"""`SchedulingRequest`: everything that one run of the scheduler decides on."""

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
from roost.scheduler.nodes.operator_words import TakenWords
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.places import RequestedPlace


class SchedulingRequest(msgspec.Struct, frozen=True):
    """A request to place ``instances`` (consumer uuids), each with ``num_alternates`` alternates.

    Instances are placed in order, until one cannot be placed; if fewer than ``min_count`` are placed then,
    none is.

    - ``run``: the id of the run.
    - ``query``, ``fallbacks``, ``limit``, ``places``: the queries to placement, see
      `roost.scheduler.request.query.PlacementQueries`.
    - ``now``: seconds since the epoch, to judge heartbeats.
    - ``seed``: of the run's own random numbers.
    - ``deadline``: the run ends when ``monotonic`` (a clock, in seconds) reaches it.
    - ``generations``: of the instances that hold allocations already, which the run replaces.
    - ``word``: the operators' words that the node table had taken in when the queries were made; None: newer
      words are not checked.
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
    places: tuple[RequestedPlace, ...] = ()
    deadline: float = math.inf
    monotonic: Callable[[], float] = time.monotonic
    generations: Mapping[str, int] = {}
    word: TakenWords | None = None

    def check_word(self, announced: int) -> None:
        """Raise `NewerWord` if the ledger's state has another announcement of words than the request."""
        if self.word is not None and self.word.mark != announced:
            raise NewerWord(announced)

    @property
    def queries(self) -> tuple[CandidateQuery, ...]:
        """The query, then the fallbacks."""
        return (self.query, *self.fallbacks)

    @property
    def oldest_heartbeat(self) -> float:
        """The time of the oldest heartbeat that still counts, in seconds since the epoch.

        A service without a heartbeat since then is down.
        """
        return self.now - self.options.service_down_time

    def expired(self) -> bool:
        """Return whether the deadline of the run has passed."""
        return self.deadline != math.inf and self.monotonic() >= self.deadline


@dataclass(slots=True)
class GroupPlacement:
    """The members of the request's server group by host, for filters and weighers.

    ``members``: host index -> number of members there, those placed by this run included; only hosts with
    members, and empty without a group. Members on hosts that the table lacks count under
    `roost.scheduler.pool.group_members.ELSEWHERE`. ``present``: hosts with an instance of the request that
    is a member of the group already.
    """

    members: Counter[int] = field(default_factory=Counter)
    present: frozenset[int] = frozenset()

    def members_on(self, index: Indexes) -> Float64:
        """Return the number of members on each of some hosts of the table: float64[len(index)]."""
        if not self.members:
            return np.zeros(len(index))
        hosts = np.fromiter(self.members.keys(), dtype=np.intp, count=len(self.members))
        numbers = np.fromiter(self.members.values(), dtype=np.float64, count=len(self.members))
        order = np.argsort(hosts)
        hosts, numbers = hosts[order], numbers[order]
        places = np.minimum(np.searchsorted(hosts, index), len(hosts) - 1)
        found: Float64 = np.where(hosts[places] == index, numbers[places], 0.0)
        return found

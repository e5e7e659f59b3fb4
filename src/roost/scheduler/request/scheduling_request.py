"""`HostRequest`, what a caller asks for, and `SchedulingRequest`, everything that one run decides on."""

import math
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self, TypedDict, Unpack

import msgspec
import numpy as np
from msgspec.structs import replace

from roost.fleet import Fleet
from roost.fleet.columns import Float64
from roost.model.allocation import AFFINITY, HandedClaim, KeptAllocations
from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.errors import NewerWord
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.operator_words import TakenWords
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.demand.demand import Demand
from roost.scheduler.request.places import RequestedPlace

_VERSION = 0x7 << 76
_VARIANT = 0x2 << 62


def new_run_id() -> str:
    """Return a new id, as a UUID in its usual form; 74 of its bits are random.

    The random bits keep ids apart and need not be secret: a system call for them would take longer than the
    rest of a record on its way to the queue.

    A run's id is a key in every table of the records. Ids in the order of time go to the end of the indexes.
    Random ids change a page of each index for each run, and most of the effort of a record is the writing of
    these pages.

    Source: RFC 9562, section 5.7.
    """
    apart = random.getrandbits(12) << 64 | random.getrandbits(62)
    digits = f"{time.time_ns() // 1_000_000 << 80 | _VERSION | _VARIANT | apart:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class HostRequest(msgspec.Struct, frozen=True):
    """A request of a caller: hosts for equal ``instances`` (consumer uuids).

    Instances are placed in order, until one cannot be placed.

    - ``num_alternates``: how many alternates each instance gets.
    - ``min_count``: if fewer can be placed, none is. By default all.
    - ``generations``: of the instances that hold something already, which the run replaces: what they hold
      counts as free for them, and a claim of theirs is one write at the generation.
    - ``beside``: of the instances that hold something already and keep it, all that they hold. It counts as
      used, and a claim of theirs is one write at its generation, with what is kept and what is new. If such
      a run fails, what is kept stays. The use of an alternate replaces both. An instance has one assignment
      of hardware, which the claim moves to the new host. Nova evacuates in this way.
    - ``handed``: of the instances that move, all that they hold, and the consumers of their migrations. It
      counts as used, and a claim of theirs is one write at its generation: the migration takes over what the
      instance holds, and the instance has the claim alone. If such a run fails, all is as before.
    - ``held_by``: of the instances that move, the consumers that hold their present hosts for them: Nova's
      migrations. In a server group such a consumer counts as the instance itself, as that of ``handed`` does.
    - ``of_instances``: by consumer, the instances that are claimed for by consumers of other uuids, as those
      are that were shelved before. The records name them.
    - ``run``: the id of the run, which no other run has; made up if it is empty.
    - ``request_id``, ``global_request_id``: of the user's request, for the records.
    - ``strict``: refuse what `roost.scheduler.Scheduler.check_request` refuses.
    - ``of_nova``: the request comes from Nova, whose drivers read keys too.
    """

    spec: RequestSpec
    instances: tuple[str, ...]
    num_alternates: int = 0
    min_count: int = 0
    generations: Mapping[str, int] = {}
    run: str = ""
    request_id: str | None = None
    global_request_id: str | None = None
    strict: bool = False
    of_nova: bool = False
    beside: Mapping[str, KeptAllocations] = {}
    held_by: Mapping[str, str] = {}
    handed: Mapping[str, HandedClaim] = {}
    of_instances: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        if not self.min_count:
            msgspec.structs.force_setattr(self, "min_count", len(self.instances))

    @classmethod
    def new(
        cls, spec: RequestSpec, count: int = 1, num_alternates: int = 0, min_count: int = 0
    ) -> "HostRequest":
        """Return a request for ``count`` new instances, whose uuids are made up."""
        return HostRequest(spec, tuple(str(uuid.uuid4()) for _ in range(count)), num_alternates, min_count)

    def check(self) -> None:
        """Raise `ValueError` if the numbers or the names of instances do not go together."""
        names, count = set(self.instances), len(self.instances)
        if not 1 <= self.min_count <= len(names) == count or self.num_alternates < 0:
            raise ValueError(
                f"count {count}, min_count {self.min_count}, num_alternates {self.num_alternates} and "
                f"{len(names)} different instances do not go together"
            )
        if not self.generations.keys() <= names:
            raise ValueError(f"generations of other instances: {sorted(self.generations.keys() - names)}")
        if not self.beside.keys() <= names - self.generations.keys():
            wrong = sorted(self.beside.keys() - (names - self.generations.keys()))
            raise ValueError(f"other instances, or such as are replaced, keep allocations: {wrong}")
        if not self.held_by.keys() <= names:
            raise ValueError(f"others hold for other instances: {sorted(self.held_by.keys() - names)}")
        may_hand = names - self.generations.keys() - self.beside.keys() - self.held_by.keys()
        if not self.handed.keys() <= may_hand:
            wrong = sorted(self.handed.keys() - may_hand)
            raise ValueError(f"others than instances that move with all that they hold hand over: {wrong}")
        if not self.of_instances.keys() <= names:
            raise ValueError(f"instances of other consumers: {sorted(self.of_instances.keys() - names)}")
        migrations = {each.consumer for each in self.handed.values()}
        if len(migrations) < len(self.handed) or migrations & {*names, *self.held_by.values()}:
            raise ValueError(f"migrations are consumers of their own, one for each: {sorted(migrations)}")

    def at(self, generations: Mapping[str, int]) -> Self:
        """Return the same request at newer generations of consumers that hold something already."""
        return replace(
            self,
            generations={name: generations.get(name, at) for name, at in self.generations.items()},
            beside={
                name: replace(kept, generation=generations.get(name, kept.generation))
                for name, kept in self.beside.items()
            },
            handed={
                name: replace(kept, generation=generations.get(name, kept.generation))
                for name, kept in self.handed.items()
            },
        )

    def generation_of(self, instance: str) -> int | None:
        """Return the generation of an instance before its claim, None for one that holds nothing yet."""
        kept = self.kept_of(instance)
        return self.generations.get(instance) if kept is None else kept.generation

    def kept_of(self, instance: str) -> KeptAllocations | None:
        """Return all that an instance holds and the claim does not replace: the instance keeps it, or its
        migration takes it over (`HandedClaim`)."""
        return self.beside.get(instance) or self.handed.get(instance)

    @property
    def holders(self) -> Mapping[str, str]:
        """The consumers that hold the present hosts for instances that move, before or by the claim."""
        if not self.handed:
            return self.held_by
        return {**self.held_by, **{name: each.consumer for name, each in self.handed.items()}}

    @property
    def consumers(self) -> Sequence[str]:
        """The consumers that the claims write: the instances, and the migrations that take over from them."""
        if not self.handed:
            return self.instances
        return (*self.instances, *(each.consumer for each in self.handed.values()))


class PlacementQueries(msgspec.Struct, frozen=True):
    """The candidate queries for one instance of a request.

    Candidates of the ``fallbacks`` serve as well and are tried after those of ``query``: one fallback asks
    for VCPU where ``query`` asks for PCPU, others ask for other page sizes. ``limit``: the most candidates
    to ask for over HTTP, None for all. ``places``: nodes that the request allows or excludes, beside the
    queries. ``demand``: what the queries were made from; None for recorded queries.
    """

    query: CandidateQuery
    fallbacks: tuple[CandidateQuery, ...] = ()
    limit: int | None = None
    places: tuple[RequestedPlace, ...] = ()
    demand: Demand | None = None


class RunTerms(TypedDict, total=False):
    """Keyword arguments for the fields of a `SchedulingRequest` that neither the caller nor the options
    give."""

    seed: int
    deadline: float
    monotonic: Callable[[], float]
    word: TakenWords | None


class SchedulingRequest(HostRequest, frozen=True, kw_only=True, dict=True):
    """A request of a caller, with all that one run of the scheduler derives from it or adds.

    - ``query``, ``fallbacks``, ``limit``, ``places``: see `PlacementQueries`.
    - ``options``: of the scheduler.
    - ``now``: seconds since the epoch, to judge heartbeats.
    - ``seed``: of the run's own random numbers.
    - ``deadline``: the run ends when ``monotonic`` (a clock, in seconds) reaches it.
    - ``word``: the operators' words that the node table had taken in when the queries were made; None: newer
      words are not checked.
    """

    query: CandidateQuery
    fallbacks: tuple[CandidateQuery, ...] = ()
    limit: int | None = None
    places: tuple[RequestedPlace, ...] = ()
    options: SchedulerOptions
    now: float
    seed: int = 0
    deadline: float = math.inf
    monotonic: Callable[[], float] = time.monotonic
    word: TakenWords | None = None

    @classmethod
    def of(
        cls,
        request: HostRequest,
        queries: PlacementQueries,
        options: SchedulerOptions,
        now: float,
        **terms: Unpack[RunTerms],
    ) -> "SchedulingRequest":
        """Return the scheduling request of a caller's request."""
        found = cls(
            request.spec,
            request.instances,
            request.num_alternates,
            request.min_count,
            request.generations,
            request.run,
            request.request_id,
            request.global_request_id,
            request.strict,
            request.of_nova,
            request.beside,
            request.held_by,
            request.handed,
            request.of_instances,
            query=queries.query,
            fallbacks=queries.fallbacks,
            limit=queries.limit,
            places=queries.places,
            options=options,
            now=now,
            **terms,
        )
        if queries.demand is not None:
            found.__dict__["demand"] = queries.demand
        return found

    def with_spec(self, spec: RequestSpec, queries: PlacementQueries) -> "SchedulingRequest":
        """Return the same request for another spec."""
        return replace(
            self,
            spec=spec,
            query=queries.query,
            fallbacks=queries.fallbacks,
            limit=queries.limit,
            places=queries.places,
        )

    @cached_property
    def demand(self) -> Demand:
        """The demand of one instance, derived once."""
        return Demand(self.spec, self.options)

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
    `ELSEWHERE`. ``present``: hosts with an instance of the request that
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


ELSEWHERE = -1
"""The index for members on hosts that the table does not have."""


def progress_at_start(
    request: SchedulingRequest,
    table: NodeTable,
    fleet: Fleet | None = None,
    claims: Mapping[str, Sequence[str]] | None = None,
) -> GroupPlacement:
    """Return the members of the request's server group before the run has placed any instance.

    The spec names the host of each member as far as its writer knew. ``fleet`` or ``claims`` (member -> uuids
    of its hosts, as a placement service answers) know every member with a claim, and nodes report those that
    they run. A member may be known several times, so the largest of the numbers counts for each host.

    The claims of the request's instances, and of the consumers that hold for them, do not count, or the only
    member of an affinity group could never leave its host. The hosts of these claims, and those that report
    an instance, are ``present``.
    """
    group = request.spec.group
    if group is None:
        return GroupPlacement()
    members = Counter(index for host in group.hosts for index in table.indexes_of_host(host) or (ELSEWHERE,))
    if group.members and group.policy != AFFINITY:
        members |= Counter(index for member in group.members for index in table.indexes_of_instance(member))
    claimed: Counter[int] = Counter()
    own = {*request.instances, *request.holders.values()}
    present = {index for consumer in own for index in table.indexes_of_instance(consumer)}
    if fleet is not None and group.uuid in fleet.groups:
        rows, numbers = fleet.groups.hosts(group.uuid)
        for index, number in zip(table.indexes_of_rows(fleet, rows).tolist(), numbers.tolist(), strict=True):
            claimed[index if index >= 0 else ELSEWHERE] += number
        for consumer in own:
            hosts_of_it = fleet.groups.hosts_of(group.uuid, consumer)
            there = table.indexes_of_rows(fleet, np.array(hosts_of_it, dtype=np.intp)).tolist()
            present.update(there)
            claimed.subtract(index if index >= 0 else ELSEWHERE for index in there)
    for member, hosts in (claims or {}).items():
        found = [table.index_of_node(host) for host in hosts]
        indexes = [ELSEWHERE if index is None else index for index in found]
        if member in own:
            present.update(indexes)
        else:
            claimed.update(indexes)
    return GroupPlacement(members | claimed if claimed else members, frozenset(present))

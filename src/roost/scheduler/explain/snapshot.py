"""Snapshots: the state of placement that an explanation judges and decides on.

Two make it: `roost.scheduler.explain.fleet_snapshot.FleetSnapshot` from a copy of the fleet,
`roost.scheduler.explain.answer_snapshot.AnswerSnapshot` from the answers of a placement service over HTTP.
Decisions are really made on a snapshot, by the selection of all runs, and taken back.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from roost.fleet.columns import Bools
from roost.fleet.constraint import Constraint
from roost.model.reasons import Miss, StageKind
from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.candidates.candidate_source import CandidateSource
from roost.scheduler.errors import SchedulerError
from roost.scheduler.filters.server_group_affinity import ServerGroupAffinityFilter
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinityFilter
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.outstanding import taken_by
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.pool.fresh_pool import FreshPool
from roost.scheduler.pool.host_pool import HostPool
from roost.scheduler.request.places import RequestedPlace
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.request_filters.table_filters import segments_of
from roost.scheduler.request.scheduling_request import GroupPlacement, PlacementQueries, SchedulingRequest
from roost.scheduler.selection.claim_result import ClaimResult
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Claim, Outcome
from roost.scheduler.selection.running_selection import RunningSelection
from roost.scheduler.selection.selection import RandomDraw, choose


@dataclass(slots=True, eq=False, kw_only=True)
class Condition:
    """One condition of a request. Masks are over the trees of a `QuerySurvey`: bool[n].

    ``words`` follow a plural subject: ``have 8 VCPU free``. ``public``: the words for the project, by default
    the same; an administrator or a filter may have put names of hosts into the request. ``without``: the
    request without the condition, in words. ``subject``: the source of the condition. ``removed``: hosts that
    it removes in its turn. ``failing``: all judged hosts that do not meet it; None if not all of them were
    asked. ``sole``: how many hosts it alone removes.
    """

    kind: StageKind
    name: str
    words: str
    public: str = ""
    without: str = ""
    subject: Constraint | RequestedPlace | Filter | None = None
    removed: Bools
    failing: Bools | None = None
    sole: int | None = None
    providers_alone: int | None = None

    def is_of(self, *classes: type) -> bool:
        """Return whether its source is a filter of one of some classes."""
        return isinstance(self.subject, Filter) and isinstance(self.subject.plugin, classes)

    def __post_init__(self) -> None:
        self.public = self.public or self.words
        self.without = self.without or f"without {self.name}"


@dataclass(slots=True)
class NearHosts:
    """A condition and the hosts that fail it alone, nearest first.

    ``index``: of each host. ``amounts``: for a constraint on an amount, the nearest amount that each host
    could give.
    """

    condition: Condition
    misses: list[Miss]
    index: list[int]
    amounts: Sequence[int] = ()


@dataclass(kw_only=True)
class QuerySurvey:
    """The trees of placement before one instance of a request, and what the queries make of them.

    ``index``: intp[n], the node of each tree, -1 for a tree that is no host. ``offered``: bool[n], the trees
    that can serve a query. ``judged``: bool[n], the hosts about which filters can be asked; ``source`` has
    them in the same order. ``conditions``: those of the query, in order; ``others`` come after the filters.
    ``asked``: the query that they are of; ``query``: the same in words. ``trees``, ``providers``: their
    numbers in all; None where hosts alone are known.
    """

    index: Indexes
    offered: Bools
    judged: Bools
    source: CandidateSource
    asked: CandidateQuery
    query: tuple[str, ...]
    conditions: list[Condition] = field(default_factory=list)
    others: Sequence[Condition] = ()
    trees: int | None = None
    providers: int | None = None

    def near(self, among: Bools, most: int) -> Iterator[NearHosts]:
        """Yield the constraints that some of the trees ``among`` fail alone, each with ``most`` hosts.

        Also sets the ``sole`` of the conditions.
        """
        return iter(())

    def most_on(self, constraint: Constraint, position: int) -> int:
        """Return the part of a constraint's amount that a tree could give, one less than the amount at most;
        0 if unknown."""
        return 0

    def best(self, constraint: Constraint, among: Bools) -> tuple[int, int] | None:
        """Return the position of the tree that could give most of an amount, and how much; None if unknown.

        ``among``: the trees to choose from.
        """
        return None


CLAIM_CONDITIONS = (Filter.of(ServerGroupAffinityFilter()), Filter.of(ServerGroupAntiAffinityFilter()))
"""Conditions by which claims are judged, whether or not the filters are enabled, or apply."""


class Snapshot(ABC):
    """A state of placement with the node table, on which requests are decided and taken back.

    It, the table too, must belong to nobody else: claims are made on it. ``one_by_one``: False if a host that
    a request may use can fail the request, so that success on one host does not imply success on all.
    """

    def __init__(self, pools: HostPools) -> None:
        self.pools = pools
        self.table = pools.table
        self.one_by_one = True
        self._claims: list[Claim] = []

    # State

    @property
    def version(self) -> int | None:
        """The version of the ledger; None if unknown."""
        return None

    @abstractmethod
    def survey(self, request: SchedulingRequest) -> QuerySurvey:
        """Return the trees before the first instance of a request."""

    @abstractmethod
    def candidates(self, request: SchedulingRequest, only: int | None = None) -> CandidateSource:
        """Return the hosts that placement offers for a request, claims included.

        ``only``: the index of the one host to include. A request whose query the snapshot knows nothing of
        has none.
        """

    @abstractmethod
    def members(self, request: SchedulingRequest) -> GroupPlacement:
        """Return the members of the request's server group, claims included."""

    def claimed_members(self, request: SchedulingRequest) -> GroupPlacement:
        """Return the members of the server group that have claims. Claims are judged by these alone."""
        group = request.spec.group
        if group is None:
            return GroupPlacement()
        spec = msgspec.structs.replace(request.spec, group=msgspec.structs.replace(group, hosts=()))
        return self.members(msgspec.structs.replace(request, spec=spec))

    @abstractmethod
    def index_of(self, claim: Claim) -> int | None:
        """Return the index of the host that a claim is on."""

    @abstractmethod
    def _aggregates_of(self, segment: str) -> frozenset[str]:
        """Return the aggregates of a network segment."""

    @abstractmethod
    def _claim(self, request: SchedulingRequest, claim: Claim) -> ClaimResult:
        """Make a claim."""

    # Decisions

    def decide(
        self,
        request: SchedulingRequest,
        filters: Sequence[Filter] | None = None,
        only: int | None = None,
        pool: HostPool | None = None,
    ) -> Outcome:
        """Choose hosts and claim them; the claims of a refused run stay as well.

        ``filters``: in place of those of the plugins. ``only``: the index of the one host to include.
        ``pool``: the hosts to choose from, by default all of the snapshot.

        Raises: `SchedulerError`.
        """
        request = without_limits(request)
        pool = self.pool(request, filters, only) if pool is None else pool
        running = RunningSelection(choose(request, self.table, pool, RandomDraw(request.seed)))
        while (claim := running.claim) is not None:
            result = self._claim(request, claim)
            if result.reason is None:
                self._claims.append(claim)
            running.answer(result)
        if not running.outcome.destinations:
            # The selection has released the instances that the run had placed; here they stay.
            self._count_again(request)
        return running.outcome

    def pool(
        self, request: SchedulingRequest, filters: Sequence[Filter] | None = None, only: int | None = None
    ) -> FreshPool:
        """Return the host pool of a request; ``filters`` and ``only`` as of `decide`."""
        source = self.candidates(request, only)
        return self.pools.of_source(source, request, self.members(request), filters)

    @property
    def claims(self) -> Sequence[Claim]:
        """The claims that are made and not taken back."""
        return self._claims

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Take back at the end what is claimed in the context."""
        before = len(self._claims)
        try:
            yield
        finally:
            self.table.release(*(claim.instance for claim in self._claims[before:]))
            del self._claims[before:]

    def to_try(self, request: SchedulingRequest, hosts: Sequence[int | None]) -> Sequence[int | None]:
        """Return the hosts to try a changed request on, each alone; None stands for all hosts together.

        It is for all together where one host alone proves nothing: any of several instances may go anywhere.
        """
        alone = self.one_by_one and len(request.instances) == 1
        return hosts if alone and hosts else (None,)

    def works(
        self, request: SchedulingRequest, filters: Sequence[Filter] | None, only: int | None
    ) -> str | None:
        """Return the host of a request's last instance; None if the request is refused, or a plugin fails."""
        with self.trying():
            try:
                destinations = self.decide(request, filters, only).destinations
            except SchedulerError:
                return None
            if not destinations:
                return None
            node = destinations[-1].selected.node
            index = self.table.index_of_node(node)
            return node if index is None else host_name(self.table, index)

    def queries(self, spec: RequestSpec, options: SchedulerOptions) -> PlacementQueries:
        """Return the placement queries of a spec. Raises: `SchedulerError`."""
        aggregates = {segment: self._aggregates_of(segment) for segment in segments_of(spec, options)}
        return placement_queries(spec, FilterFacts(self.table, options, aggregates=aggregates))

    def with_spec(self, request: SchedulingRequest, spec: RequestSpec) -> SchedulingRequest:
        """Return the scheduling request with another spec. Raises: `SchedulerError`."""
        return request.with_spec(spec, self.queries(spec, request.options))

    def _count_again(self, request: SchedulingRequest) -> None:
        memory_mb, disk_mb = taken_by(request.spec)
        for claim in self._claims:
            index = self.index_of(claim) if claim.instance in request.instances else None
            if index is not None:
                assignment = claim.candidate.assignment
                self.table.claim(claim.instance, index, memory_mb, disk_mb, assignment)


def without_limits(request: SchedulingRequest) -> SchedulingRequest:
    """Return the request without a time limit, and without alternates."""
    return msgspec.structs.replace(request, deadline=math.inf, num_alternates=0)


def host_name(table: NodeTable, index: int) -> str:
    """Return the name of a host: of its service, with the node if the service has several."""
    host, node = table.hosts[index], table.nodenames[index]
    return host if len(table.indexes_of_host(host)) < 2 else f"{host}/{node}"

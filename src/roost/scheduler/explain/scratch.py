"""Decisions that are taken back, on a fleet that belongs to nobody else: a fork, or a forked process."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from roost.fleet import Fleet
from roost.ledger import State
from roost.scheduler.candidates.fallback_candidates import fleet_candidates
from roost.scheduler.errors import SchedulerError
from roost.scheduler.gateways.running_selection import RunningSelection, claimed
from roost.scheduler.nodes.outstanding import taken_by
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.pool.fresh_pool import FreshPool
from roost.scheduler.pool.group_members import progress_at_start
from roost.scheduler.pool.host_pool import HostPool
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.outcome import Claim, Outcome
from roost.scheduler.selection.selection import Plugins, RandomDraw, choose


class Scratch:
    """Decides as `roost.scheduler.gateways.local.Decide` does, by the same selection and the same claims.

    Claims stay on the fleet and in the table until they are taken back. ``one_by_one``: False if a host that
    a request may use can fail the request, so that success on one host does not imply success on all.
    """

    def __init__(self, fleet: Fleet, table: NodeTable, plugins: Plugins) -> None:
        self.fleet = fleet
        self.table = table
        self.plugins = plugins
        self._state = State(fleet, {}, 0.0)
        self._claims: list[Claim] = []
        self.one_by_one = True

    def decide(
        self,
        request: SchedulingRequest,
        filters: Sequence[Filter] | None = None,
        only: int | None = None,
        *,
        cached: bool = False,
    ) -> Outcome:
        """Choose hosts and claim them; the claims of a refused run stay as well.

        ``filters``: in place of those of the plugins. ``only``: the index of the one host to include.
        ``cached``: use the equivalence cache of the plugins, which pays for runs of many instances.

        Raises: `SchedulerError`.
        """
        request = without_limits(request)
        self._state.name(request.instances)
        running = RunningSelection(
            choose(request, self.table, self._pool(request, filters, only, cached), RandomDraw(request.seed))
        )
        while (claim := running.claim) is not None:
            result = claimed(self._state, request, claim)
            if result.reason is None:
                self._claims.append(claim)
            running.answer(result)
        if not running.outcome.destinations:
            # The selection has released the instances that the run had placed; here they stay.
            self._count_again(request)
        return running.outcome

    @property
    def claims(self) -> Sequence[Claim]:
        """The claims that are made and not taken back."""
        return self._claims

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Take back at the end what is claimed in the context."""
        mark, before = len(self._state.changes), len(self._claims)
        try:
            yield
        finally:
            self._state.take_back(mark)
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
            return destinations[-1].selected.node if destinations else None

    def index_of(self, claim: Claim) -> int | None:
        """Return the index of the host that a claim is on."""
        fleet = self.fleet
        hosts = fleet.hosts_of(fleet.row(provider) for provider in claim.candidate.allocations)
        return self.table.index_of_node(fleet.uuid(hosts[0])) if hosts else None

    def _pool(
        self, request: SchedulingRequest, filters: Sequence[Filter] | None, only: int | None, cached: bool
    ) -> HostPool:
        fleet, table, plugins = self.fleet, self.table, self.plugins
        if cached and (pool := plugins.cache.pool(fleet, request, table)) is not None:
            return pool
        source = fleet_candidates(fleet, request, table, only)
        progress = progress_at_start(request, table, fleet)
        chosen = plugins.filters if filters is None else filters
        return FreshPool(request, table, source, chosen, plugins.weighers, progress)

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

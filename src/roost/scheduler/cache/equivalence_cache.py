"""The equivalence classes of a scheduler, and the decisions that may use them."""

import math
from collections.abc import Hashable, Sequence

import msgspec

from roost.fleet import Fleet
from roost.model.request import CandidateQuery
from roost.scheduler.cache.cached_pool import CachedPool
from roost.scheduler.cache.equivalence_class import EquivalenceClass
from roost.scheduler.cache.feasibility import by_roots_alone
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.cache.narrowed import Narrowed
from roost.scheduler.cache.plugin_roles import Parts, PluginParts
from roost.scheduler.cache.verdicts import Verdicts
from roost.scheduler.cache.weigher_columns import OwnColumns
from roost.scheduler.candidates.candidate_order import CandidateOrder
from roost.scheduler.errors import CannotWeigh, SchedulerFault
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugins import Filter, Weigher
from roost.scheduler.pool.group_members import progress_at_start
from roost.scheduler.request.places import is_forced
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

MOST_CLASSES = 256
"""Equivalence classes kept; one more drops the least recently used one."""
_MOST_PLACES = 32_000_000
"""Places of all classes together. Each takes up to 9 bytes, mostly little more than one."""

_MOST_ENCODED = 256
_encode = msgspec.msgpack.Encoder().encode


class EquivalenceCache:
    """The cached results of a scheduler with these plugins, from one decision to the next."""

    def __init__(self, filters: Sequence[Filter], weighers: Sequence[Weigher]) -> None:
        self._filters = filters
        self._weighers = weighers
        self._plugin_parts = PluginParts(filters, weighers)
        self._ordering = (
            [each for each in filters if each.narrow is not None],
            [each for each in weighers if each.rank is not None],
        )
        # Recent queries, encoded: most requests come with the same few objects.
        self._encoded: dict[int, tuple[CandidateQuery, bytes]] = {}
        self._host_index: HostIndex | None = None
        self._verdicts: Verdicts | None = None
        self._classes: dict[tuple[Hashable, ...], EquivalenceClass] = {}

    def pool(self, fleet: Fleet, request: SchedulingRequest, table: NodeTable) -> CachedPool | None:
        """Return the host pool of a request on the fleet as it is now; None if the request cannot use the
        cache.

        Raises: `SchedulerFault` if a plugin cannot return its key.
        """
        if is_forced(request.spec) or not len(table):
            return None
        if any(place.step in ("force_hosts", "force_nodes") for place in request.places):
            # The query is for the trees of a few hosts: no other request would use its class.
            return None
        host_index = self._current_host_index(fleet, request, table)
        if host_index is None:
            return None
        parts = self._plugin_parts.parts(request)
        asked = tuple((self._encode(each), by_roots_alone(fleet, each)) for each in request.queries)
        key = (*asked, *parts.key)
        equivalence_class = self._classes.pop(key, None)
        try:
            if equivalence_class is None or not equivalence_class.catch_up(request):
                equivalence_class = EquivalenceClass(host_index, request, parts.filter_roles)
        except SchedulerFault:
            return None
        self._classes[key] = equivalence_class
        if len(self._classes) > min(MOST_CLASSES, 1 + _MOST_PLACES // len(host_index.layout)):
            del self._classes[next(iter(self._classes))]
        order = CandidateOrder(*self._ordering, request)
        progress = progress_at_start(request, table, fleet)
        hosts = self._narrowed(host_index, equivalence_class, request, parts, progress)
        return None if hosts is None else CachedPool(host_index, hosts, request, parts.again, order, progress)

    def _narrowed(
        self,
        host_index: HostIndex,
        equivalence_class: EquivalenceClass,
        request: SchedulingRequest,
        parts: Parts,
        progress: GroupPlacement,
    ) -> EquivalenceClass | Narrowed | None:
        """Return the class, narrowed if some filters or weighers are asked for this request alone.

        None: a plugin fails on some host. The run finds out whether it meets that host.
        """
        if not (parts.asks_filters or parts.own or request.spec.ignore_hosts or request.places):
            return equivalence_class
        verdicts = self._verdicts = self._verdicts or Verdicts(host_index)
        own = OwnColumns(host_index, parts.own, request)
        try:
            return Narrowed(
                host_index, equivalence_class, verdicts, request, parts.filter_roles, own, progress
            )
        except SchedulerFault:
            return None

    def _encode(self, query: CandidateQuery) -> bytes:
        found = self._encoded.get(id(query))
        if found is None:
            if len(self._encoded) == _MOST_ENCODED:
                self._encoded.clear()
            # The query is kept alive with its encoding, so that no other query gets its id.
            found = self._encoded[id(query)] = query, _encode(query)
        return found[1]

    def _current_host_index(
        self, fleet: Fleet, request: SchedulingRequest, table: NodeTable
    ) -> HostIndex | None:
        """Return the host index, caught up or rebuilt; None if a host has no weight or a plugin fails on one.

        The host index asks weighers about all hosts of the table, a run only about those that it may use. The
        run finds out whether the request must fail.
        """
        host_index, self._host_index = self._host_index, None
        verdicts, self._verdicts = self._verdicts, None
        try:
            if (
                host_index is None
                or host_index.fleet is not fleet
                or host_index.table is not table
                or host_index.options is not request.options
                or not host_index.sync(request)
            ):
                self._classes.clear()
                if not _sound(request):
                    return None
                host_index = HostIndex(fleet, table, self._filters, self._weighers, request)
        except (CannotWeigh, SchedulerFault):
            self._classes.clear()
            return None
        if self._classes:
            self._verdicts = verdicts
        self._host_index = host_index
        return host_index


def _sound(request: SchedulingRequest) -> bool:
    """Return whether all multipliers are finite numbers."""
    return all(map(math.isfinite, request.options.multipliers.values()))

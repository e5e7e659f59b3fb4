"""`RequestReader`: from what a caller asks for to what a run decides on, if that can be served at all."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Unpack

from roost.model.aggregate import AVAILABILITY_ZONE
from roost.model.spec import RequestSpec, UnreadKey
from roost.model.text import error_text
from roost.scheduler.errors import BadRequestSpec, SchedulerError, SchedulerFault, UnknownZone
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.keys.judgement import KeyJudge
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.rebuild import NOTHING, is_rebuild
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.request_filters.table_filters import segments_of
from roost.scheduler.request.scheduling_request import (
    HostRequest,
    PlacementQueries,
    RunTerms,
    SchedulingRequest,
)
from roost.scheduler.selection.host_pools import HostPools

Aggregates = Callable[[Collection[str]], Awaitable[Mapping[str, frozenset[str]]]]
"""Returns the aggregates in placement of each of some providers."""


class RequestReader:
    """Reads requests by the present node table and the options of one scheduler."""

    def __init__(self, pools: HostPools, aggregates: Aggregates) -> None:
        self._table = pools.table
        self._options = pools.options
        self._plugins = pools.plugins
        self._keys = KeyJudge(pools.options, pools.plugins)
        self._aggregates = aggregates

    def unread(self, spec: RequestSpec, *, of_nova: bool = False) -> tuple[UnreadKey, ...]:
        """Return the extra specs, image properties and hints that have no effect, see `KeyJudge.unread`."""
        return self._keys.unread(spec, self._table, of_nova=of_nova)

    def checked(self, spec: RequestSpec) -> tuple[UnreadKey, ...]:
        """As `unread`, for a spec that must be servable on some hosts, perhaps not on the present ones.

        Raises:
            BadRequestSpec: it can never be served, or a key can only be a mistake.
        """
        unread = self._keys.check(spec, self._table)
        check_servable(spec, self._table, self._options)
        return unread

    def warnings(self, request: HostRequest) -> tuple[UnreadKey, ...]:
        """Return the keys that have no effect. Raises: as `checked`, for a strict request."""
        spec = request.spec
        return self.checked(spec) if request.strict else self.unread(spec, of_nova=request.of_nova)

    async def derived(self, request: HostRequest, now: float, **terms: Unpack[RunTerms]) -> SchedulingRequest:
        """Return the scheduling request of a run that begins now, in seconds since the epoch.

        Raises: `BadRequestSpec`, and the errors of ``aggregates``.
        """
        queries = await self._queries(request.spec)
        return SchedulingRequest.of(request, queries, self._options, now, **terms)

    def check_keys(self, request: SchedulingRequest) -> None:
        """Check that each plugin can read a request. Raises: `BadRequestSpec`, `SchedulerFault`."""
        try:
            for plugin in (*self._plugins.filters, *self._plugins.weighers):
                plugin.key_of(request)
        except SchedulerError:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error_text(error)}"
            raise SchedulerFault(f"a plugin cannot read the request: {text}") from error

    async def _queries(self, spec: RequestSpec) -> PlacementQueries:
        if is_rebuild(spec):
            return NOTHING
        segments = segments_of(spec, self._options)
        aggregates = await self._aggregates(sorted(segments)) if segments else {}
        return placement_queries(spec, FilterFacts(self._table, self._options, aggregates=aggregates))


def check_servable(spec: RequestSpec, table: NodeTable, options: SchedulerOptions) -> None:
    """Check that the zone of a request exists, and that the request does not contradict itself.

    Raises:
        UnknownZone: no aggregate is an availability zone of this name.
        BadRequestSpec: the request wants what it excludes.
    """
    zone = spec.availability_zone
    if zone is not None and not _is_zone(zone, table, options):
        raise UnknownZone(f"there is no availability zone {zone!r}")
    same, different = (set(spec.scheduler_hints.get(each, ())) for each in ("same_host", "different_host"))
    if same - {""} and same <= different:
        raise BadRequestSpec(f"scheduler hints same_host and different_host both name instance {min(same)}")
    destination = spec.requested_destination
    wanted = {*spec.force_hosts, *([destination.host] if destination and destination.host else [])}
    ignored = {host.lower() for host in spec.ignore_hosts}
    if wanted and all(host.lower() in ignored for host in wanted):
        raise BadRequestSpec(f"host {min(wanted)} is asked for, and is among ignore_hosts")


def _is_zone(name: str, table: NodeTable, options: SchedulerOptions) -> bool:
    return name == options.default_availability_zone or bool(table.aggregates_with(AVAILABILITY_ZONE, name))

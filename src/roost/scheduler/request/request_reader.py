"""`RequestReader`: from what a caller asks for to what a run decides on."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Unpack

from roost.model.spec import RequestSpec, UnreadKey
from roost.model.text import error_text
from roost.scheduler.errors import SchedulerError, SchedulerFault
from roost.scheduler.request.keys.judgement import KeyJudge
from roost.scheduler.request.keys.servable import check_servable
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.rebuild import NOTHING, is_rebuild
from roost.scheduler.request.request_filters import FilterFacts
from roost.scheduler.request.request_filters.routed_networks import segments_of
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

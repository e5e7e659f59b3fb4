"""The choice between placement and the cells' databases, made anew for each run."""

from collections.abc import Collection, Sequence

import numpy as np
import structlog

from roost.model.reasons import Reasons
from roost.model.request import CandidateQuery
from roost.model.what_if import WhatIf
from roost.scheduler.explain.scenario import Supposition
from roost.scheduler.gateways import Decided, Gateway
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest
from roost.scheduler.selection.selection import Plugins

PLACEMENT_SERVICE_VERSION = 16
"""The least service version of compute services that report to placement as the scheduler needs it.

Source: Nova 15.0.0 (Ocata), whose scheduler used placement once all compute services had this version.
"""

_log = structlog.get_logger()


class SwitchingGateway:
    """Decides by placement, but by reported amounts while a compute service is older than placement.

    A node that reports no service version (0) counts as new.
    """

    def __init__(self, placement: Gateway, reported: Gateway) -> None:
        self._placement = placement
        self._reported = reported
        self._at = (-1, -1)
        self._without_placement = False

    async def decide(self, request: SchedulingRequest, table: NodeTable, plugins: Plugins) -> Decided:
        """As `Gateway.decide`."""
        return await self._source(table).decide(request, table, plugins)

    async def check(self, queries: Sequence[CandidateQuery]) -> None:
        source = self._reported if self._without_placement else self._placement
        await source.check(queries)

    async def explain(
        self,
        request: SchedulingRequest,
        table: NodeTable,
        plugins: Plugins,
        placed: int,
        *,
        newest: bool = False,
    ) -> Reasons | None:
        """As `Gateway.explain`."""
        return await self._source(table).explain(request, table, plugins, placed, newest=newest)

    async def what_if(self, supposed: Supposition, table: NodeTable, plugins: Plugins) -> WhatIf | None:
        """As `Gateway.what_if`."""
        return await self._source(table).what_if(supposed, table, plugins)

    async def aggregates(self, providers: Collection[str]) -> dict[str, frozenset[str]]:
        source = self._reported if self._without_placement else self._placement
        return await source.aggregates(providers)

    async def use_alternate(
        self, request: ReplacementRequest, table: NodeTable, plugins: Plugins
    ) -> Replacement:
        """As `Gateway.use_alternate`."""
        return await self._source(table).use_alternate(request, table, plugins)

    def _source(self, table: NodeTable) -> Gateway:
        at = (table.structure, table.invalidations.end)
        if at != self._at:
            self._at = at
            versions = table.service_version[: table.size]
            old = versions[(versions > 0) & (versions < PLACEMENT_SERVICE_VERSION)]
            self._switch(len(old), int(np.min(old)) if len(old) else 0)
        return self._reported if self._without_placement else self._placement

    def _switch(self, old: int, oldest: int) -> None:
        if bool(old) == self._without_placement:
            return
        self._without_placement = bool(old)
        if old:
            _log.warning(
                "hosts come from the cells' databases: computes are older than placement",
                nodes=old,
                oldest_service_version=oldest,
                needed_service_version=PLACEMENT_SERVICE_VERSION,
            )
        else:
            _log.warning("hosts come from placement again: no compute is older than it")

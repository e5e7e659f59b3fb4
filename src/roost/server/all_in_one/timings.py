"""Durations of decisions and claims, measured in the gateway."""

import time
from array import array
from collections.abc import Collection, Sequence

from roost.model.reasons import Reasons
from roost.model.request import CandidateQuery
from roost.model.what_if import WhatIf
from roost.scheduler.explain.scenario import Supposition
from roost.scheduler.gateways import Decided, Gateway
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest
from roost.scheduler.selection.selection import Plugins

MOST = 10_000_000
"""Durations recorded at most: a server that runs for months makes more decisions."""


class TimedGateway:
    """Wraps a gateway and records the durations of its first `MOST` requests.

    ``instances``: the number of instances that hosts were requested for. ``decisions``: milliseconds of each
    decision (filter, weigh, pick, prepare the claim), divided by its instances. ``claims``: milliseconds
    from the request until the claim is durable.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.instances = 0
        self.decisions = array("f")
        self.claims = array("f")
        self._gateway = gateway

    async def decide(self, request: SchedulingRequest, table: NodeTable, plugins: Plugins) -> Decided:
        asked = time.perf_counter()
        decided = await self._gateway.decide(request, table, plugins)
        self.instances += len(request.instances)
        if len(self.decisions) < MOST:
            self.claims.append((time.perf_counter() - asked) * 1000)
            self.decisions.append(decided.seconds * 1000 / len(request.instances))
        return decided

    async def check(self, queries: Sequence[CandidateQuery]) -> None:
        await self._gateway.check(queries)

    async def use_alternate(
        self, request: ReplacementRequest, table: NodeTable, plugins: Plugins
    ) -> Replacement:
        return await self._gateway.use_alternate(request, table, plugins)

    async def explain(
        self,
        request: SchedulingRequest,
        table: NodeTable,
        plugins: Plugins,
        placed: int,
        *,
        newest: bool = False,
    ) -> Reasons | None:
        return await self._gateway.explain(request, table, plugins, placed, newest=newest)

    async def what_if(self, supposed: Supposition, table: NodeTable, plugins: Plugins) -> WhatIf | None:
        return await self._gateway.what_if(supposed, table, plugins)

    async def aggregates(self, providers: Collection[str]) -> dict[str, frozenset[str]]:
        return await self._gateway.aggregates(providers)

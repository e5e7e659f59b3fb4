"""The choice between placement and the cells' databases, made anew for each run."""

import numpy as np
import structlog

from roost.model.reasons import Reasons
from roost.model.what_if import WhatIf
from roost.scheduler.explain.scenario import Supposition
from roost.scheduler.gateways import Decided, Gateway, GatewayWrapper
from roost.scheduler.maintenance.live_fleet import WantedPlan
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest

PLACEMENT_SERVICE_VERSION = 16
"""The least service version of compute services that report to placement as the scheduler needs it.

Source: Nova 15.0.0 (Ocata), whose scheduler used placement once all compute services had this version.
"""

_log = structlog.get_logger()


class SwitchingGateway(GatewayWrapper):
    """Decides by placement, but by reported amounts while a compute service is older than placement.

    A node that reports no service version (0) counts as new.
    """

    def __init__(self, placement: Gateway, reported: Gateway) -> None:
        super().__init__(placement)
        self._placement = placement
        self._reported = reported
        self._at = (-1, -1)
        self._without_placement = False

    async def decide(self, request: SchedulingRequest) -> Decided:
        self._choose()
        return await super().decide(request)

    async def explain(
        self, request: SchedulingRequest, placed: int, *, newest: bool = False, moves: int = 0
    ) -> Reasons | None:
        self._choose()
        return await super().explain(request, placed, newest=newest, moves=moves)

    async def what_if(self, supposed: Supposition) -> WhatIf | None:
        self._choose()
        return await super().what_if(supposed)

    async def plan(self, wanted: WantedPlan, now: float) -> MaintenancePlan | None:
        self._choose()
        return await super().plan(wanted, now)

    async def use_alternate(self, request: ReplacementRequest) -> Replacement:
        self._choose()
        return await super().use_alternate(request)

    def _choose(self) -> None:
        """Choose anew if nodes have changed."""
        table = self.pools.table
        at = (table.structure, table.invalidations.end)
        if at != self._at:
            self._at = at
            versions = table.service_version[: table.size]
            old = versions[(versions > 0) & (versions < PLACEMENT_SERVICE_VERSION)]
            self._switch(len(old), int(np.min(old)) if len(old) else 0)

    def _switch(self, old: int, oldest: int) -> None:
        if bool(old) == self._without_placement:
            return
        self._without_placement = bool(old)
        self._gateway = self._reported if old else self._placement
        if old:
            _log.warning(
                "hosts come from the cells' databases: computes are older than placement",
                nodes=old,
                oldest_service_version=oldest,
                needed_service_version=PLACEMENT_SERVICE_VERSION,
            )
        else:
            _log.warning("hosts come from placement again: no compute is older than it")

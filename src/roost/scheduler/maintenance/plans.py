"""Plans of one scheduler, made in forked processes, one at a time, beside the ledger's writer."""

from typing import Final

from roost.fleet import Fleet
from roost.ledger import Ledger
from roost.placement.queries.forked_turns import ForkedTurns
from roost.scheduler.explain.explainer import SHARE
from roost.scheduler.forked_answers import ForkedAnswers
from roost.scheduler.maintenance.live_fleet import WantedPlan, live_fleet
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.maintenance.planner import plan_maintenance
from roost.scheduler.selection.host_pools import HostPools

SECONDS: Final = 120.0
"""Seconds that a plan may take. The planner takes about two for 800 hosts with 18,000 instances."""
MORE_BYTES: Final = 2**30
"""Memory that the process of a plan may allocate, in bytes."""


class Plans:
    """Makes plans on the head of a ledger. For use from one event loop."""

    def __init__(self, ledger: Ledger, pools: HostPools) -> None:
        self._pools = pools
        turns = ForkedTurns(1, SECONDS, MORE_BYTES, SHARE)
        self._answers = ForkedAnswers(ledger, turns, "a maintenance is not planned")

    async def plan(self, wanted: WantedPlan, now: float) -> MaintenancePlan | None:
        """Return a plan; None if it cannot be found in time, or another one is being made.

        Raises: `BadRequestSpec`, `SchedulerFault`, `StorageError`, `LedgerError`.
        """

        def planned(fleet: Fleet) -> MaintenancePlan:
            return plan_maintenance(live_fleet(fleet, self._pools, wanted, now))

        return await self._answers.answer(planned, MaintenancePlan)

"""Maintenances in simulated time: the hook, the announcements of words, and a scheduler that plans."""

from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa

from roost.conductor.maintenance.hook import HookCall
from roost.model.maintenance import HookResult
from roost.model.operator_word import SaidWord, Subject
from roost.process.context import Context
from roost.scheduler.filters.compute import ComputeFilter
from roost.scheduler.maintenance.live_fleet import WantedPlan, live_fleet
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.maintenance.planner import plan_maintenance
from roost.scheduler.plugins.plugins import Filter, Plugins
from roost.scheduler.selection.host_pools import HostPools
from roost.state.api_database.drains import is_moving
from roost.state.api_database.event_types import CloudEvent
from roost.state.api_database.tables import events, operator_words
from support.clouds import NOW
from support.simulation.databases import SimulatedDatabase
from support.simulation.hosts import FOREIGN, Host
from support.simulation.network import Handling
from support.simulation.placement import SimulatedPlacement
from support.simulation.process import Process, ServiceCall
from support.simulation.promises import promise
from support.simulation.services import SchedulerService

HOOK, WORDS = "hook", "words"
"""The services of super conductors that carry maintenances."""


class PlanningScheduler(SchedulerService):
    """The scheduler, which leaves disabled hosts out and plans maintenances."""

    def __init__(self, placement: SimulatedPlacement) -> None:
        super().__init__(placement)
        placement.pools = HostPools(placement.table, plugins=Plugins((Filter.of(ComputeFilter()),), ()))
        self.plans = 0

    def plan_maintenance(self, wanted: WantedPlan) -> MaintenancePlan:
        self.plans += 1
        # Hosts of this world have processors alone.
        specs = tuple(
            msgspec.structs.replace(each, flavor=msgspec.structs.replace(each.flavor, memory_mb=0, disk_gb=0))
            for each in wanted.specs
        )
        wanted = msgspec.structs.replace(wanted, specs=specs)
        placement = self._placement
        return plan_maintenance(live_fleet(placement.state.fleet, placement.pools, wanted, NOW))


class WordsService:
    """Announces words: from then on the scheduler knows all that are stored."""

    patience = 30.0
    local = False
    repeats_late = True

    def __init__(self, api: SimulatedDatabase, placement: SimulatedPlacement) -> None:
        self._api = api
        self._placement = placement

    def handle(self, asker: Process, call: ServiceCall) -> None:
        """Announce words."""
        assert call.method == "follow_up"
        self.announce()

    def announce(self) -> None:
        """Have the scheduler take in all stored words."""
        said = self._api.run(stored_words, False)
        self._placement.table.set_words({each.subject: each.enabled for each in said})

    def unreachable(self, unknown: bool) -> Exception:
        """The database of the ledger does not answer."""
        return ConnectionError("the ledger does not answer")


def stored_words(connection: sa.Connection) -> list[SaidWord]:
    """The last word on each subject."""
    return [
        SaidWord(Subject(row.cell, row.host, row.node), row.enabled, row.reason, row.at, is_moving(row))
        for row in connection.execute(sa.select(operator_words))
    ]


def every_event(connection: sa.Connection) -> list[CloudEvent]:
    """All events, in order."""
    bodies = connection.execute(sa.select(events.c.body).order_by(events.c.id)).scalars()
    return [msgspec.json.decode(each, type=CloudEvent) for each in bodies]


class HookService:
    """The hook of the operator. It is a program beside the process that calls it, and outlives it.

    ``seconds``: how long a call takes. ``fails``: the hosts for which it fails. ``called``: the calls, with
    the name of the process. Each call promises that its host is empty when it begins.
    """

    patience = 1e9
    local = True
    repeats_late = False

    def __init__(self, hosts: dict[str, Host], beside: Process) -> None:
        self.seconds = 5.0
        self.fails: set[str] = set()
        self.called: list[tuple[str, HookCall]] = []
        self.stopped: set[HookCall] = set()
        self.at_call: Callable[[Process, HookCall], None] = lambda process, call: None
        self._hosts = hosts
        self._beside = beside

    def handle(self, asker: Process, call: ServiceCall) -> Any:
        """Call the hook, or stop a call."""
        (asked,) = call.arguments
        if call.method == "stop":
            return self.stopped.add(asked)
        there = {*self._hosts[asked.host].guests} - {FOREIGN}
        promise(not there, f"the hook is called for {asked.host}, where {sorted(there)} are")
        self.called.append((asker.name, asked))
        self.at_call(asker, asked)
        return Handling(self._beside, self._work(self._beside.context, asked))

    async def _work(self, context: Context, call: HookCall) -> HookResult:
        passed = 0.0
        while passed < self.seconds and call not in self.stopped:
            await context.sleep(1.0)
            passed += 1.0
        if call in self.stopped:
            return HookResult("it was stopped", None, "")
        if call.host in self.fails:
            return HookResult("it ended with status 1", 1, "no such image")
        return HookResult(None, 0, "upgraded")

    def unreachable(self, unknown: bool) -> Exception:
        """The process that would be told has crashed."""
        return ConnectionError("nobody waits for the hook any more")

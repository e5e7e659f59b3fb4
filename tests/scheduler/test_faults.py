"""A plugin that raises fails one run with a typed error and a record, and spoils nothing for the next run."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from roost.fleet.columns import Bools, Float64
from roost.ledger import LedgerBusy
from roost.ledger.holdings import held_by_all
from roost.model.spec import Image
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec, CannotWeigh, SchedulerFault
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugins import Filter, Plugins, Weigher
from roost.scheduler.request.scheduling_request import GroupPlacement, HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import NOW, Kept, filled, flat, report, spec, uuid_of
from support.offering import by_metrics


class Plugin:
    """A filter and a weigher that raises while it is told to."""

    name = "odd"
    multiplier_key = "odd_weight_multiplier"
    default_multiplier = 1.0

    def __init__(self, looks: Looks | None) -> None:
        self.raises = True
        if looks is not None:
            self.looks_at = looks

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        if self.raises and 2 in hosts.index:
            raise ZeroDivisionError("division by zero")
        return None

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        if self.raises and 2 in hosts.index:
            raise ZeroDivisionError("division by zero")
        return None


@pytest.mark.parametrize("kind", ["filters", "weighers"])
@pytest.mark.parametrize("looks", [None, Looks.REPORT])
def test_plugin_that_raises(tmp_path: Path, empty_database: Path, kind: str, looks: Looks | None) -> None:
    plugin = Plugin(looks)
    filters, weighers = Plugins.enabled(SchedulerOptions())
    found = Plugins(
        [Filter.of(plugin)] if kind == "filters" else filters,
        [Weigher.of(plugin)] if kind == "weighers" else weighers,
    )

    async def run() -> None:
        cloud = flat(3)
        async with filled(tmp_path / "roost.db", cloud, empty_database) as ledger:
            kept = Kept()
            scheduler = Scheduler(
                LocalGateway(ledger, HostPools(cloud.table(), plugins=found)), kept, clock=lambda: NOW
            )
            text = f"{kind.removesuffix('s')} odd failed on host host2: ZeroDivisionError: division by zero"
            for runs in (1, 2):
                with pytest.raises(SchedulerFault, match=text):
                    await scheduler.select_destinations(HostRequest(spec(), (uuid_of(0xA0),)))
                assert [each.refusal for each in kept.runs] == [text] * runs
            assert ledger.database.read_now(held_by_all) == {}
            plugin.raises = False
            [placed] = await scheduler.select_destinations(HostRequest(spec(), (uuid_of(0xA0),)))
            assert placed.selected.host == "host0"

    asyncio.run(run())


def test_error_of_the_database_is_no_fault_of_the_scheduler() -> None:
    class Busy:
        pools = HostPools(flat(1).table())
        aggregates = None

        async def decide(self, *_: object) -> None:
            raise LedgerBusy("others were first")

    kept = Kept()
    scheduler = Scheduler(Busy(), kept, clock=lambda: NOW)  # type: ignore[arg-type]
    with pytest.raises(LedgerBusy):
        asyncio.run(scheduler.select_destinations(HostRequest.new(spec(), 1)))
    assert kept.runs == []


@pytest.mark.parametrize(
    "wish", [{"scheduler_hints": {"query": ("\udc80",)}}, {"image": Image(properties={"query": "\udc80"})}]
)
def test_request_spec_that_cannot_be_encoded_is_refused(wish: dict[str, Any]) -> None:
    scheduler = Scheduler(
        LocalGateway(None, HostPools(flat(1).table())),  # type: ignore[arg-type]
        Kept(),
        clock=lambda: NOW,
    )
    with pytest.raises(BadRequestSpec, match="cannot be encoded as UTF-8"):
        asyncio.run(scheduler.select_destinations(HostRequest.new(spec(**wish), 1)))


def test_required_metric_fails_only_requests_that_may_use_the_host(
    tmp_path: Path, empty_database: Path
) -> None:
    async def run() -> None:
        cloud = flat(3)
        async with filled(tmp_path / "roost.db", cloud, empty_database) as ledger:
            table, kept = cloud.table(), Kept()
            for number in (0, 1):
                table.update([report(f"host{number}", uuid_of(number), metrics={"heat": 20.0 - number})])
            options = SchedulerOptions(plugins=by_metrics({"heat": -1.0}))
            scheduler = Scheduler(LocalGateway(ledger, HostPools(table, options)), kept, lambda: NOW)
            with pytest.raises(CannotWeigh, match="host host2 does not report metric 'heat'"):
                await scheduler.select_destinations(HostRequest.new(spec(), 1))
            assert kept.runs[-1].refusal is not None
            [placed] = await scheduler.select_destinations(
                HostRequest.new(spec(ignore_hosts=frozenset({"host2"})), 1)
            )
            assert placed.selected.host == "host1"

    asyncio.run(run())

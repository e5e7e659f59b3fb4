"""Refusals over HTTP are explained by what placement answered: all counts add up, each told change works."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from roost.fleet import Fleet
from roost.ledger import Ledger
from roost.model.inventory import Inventory
from roost.model.reasons import Reasons, Relaxation
from roost.model.spec import RequestSpec, ServerGroup
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.explain.fleet_snapshot import FleetSnapshot
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.options import DEFAULT_FILTERS
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from scheduler.gateways.test_same_answers import MEMORY
from support.clouds import (
    NOW,
    Ask,
    Cloud,
    Kept,
    Provider,
    asks,
    clouds,
    filled,
    flat,
    over_http,
    spec,
    uuid_of,
)
from support.explaining import applied
from support.numa_hosts import two_cells
from support.offering import by_metrics

FAST = {"trait:CUSTOM_FAST": "required"}


def cloud() -> Cloud:
    """Four hosts of 8 VCPU: one with the trait and 4 VCPU free, one of the three others disabled."""
    made = flat(4)
    made.providers[0] = replace_provider(made.providers[0], frozenset({"CUSTOM_FAST"}), {"VCPU": 4})
    made.reports[3] = replace(made.reports[3], enabled=False)
    return made


def replace_provider(provider: Provider, traits: frozenset[str], used: dict[str, int]) -> Provider:
    return Provider(provider.uuid, provider.inventories, traits=traits, used=used)


def explain(
    folder: Path,
    wanted: RequestSpec,
    count: int = 1,
    of: Cloud | None = None,
    options: SchedulerOptions | None = None,
) -> Reasons:
    """What a scheduler over HTTP says of a request. It claims nothing."""

    folder.mkdir(exist_ok=True)

    async def main() -> Reasons:
        async with filled(folder / "roost.db", of or cloud()) as ledger, over_http(ledger) as placement:
            table = (of or cloud()).table()
            gateway = HttpGateway(placement, HostPools(table, options))
            scheduler = Scheduler(gateway, Kept(), clock=lambda: NOW)
            reasons = await scheduler.explain(wanted, count)
            assert reasons is not None
            assert sum(stage.hosts for stage in reasons.stages) + reasons.left == reasons.hosts
            return reasons

    return asyncio.run(main())


def test_of_a_query_without_candidates_nothing_more_is_known(tmp_path: Path) -> None:
    reasons = explain(tmp_path, spec(6, extra_specs=FAST))
    assert reasons.sentence == "none of 4 hosts has candidates in placement"
    assert reasons.public == "no host has room for it with all that is asked for"
    assert (reasons.misses, reasons.relaxations) == ((), ())
    assert (reasons.trees, reasons.providers, reasons.complete) == (0, 0, True)


def test_filters_are_judged_on_the_hosts_with_candidates(tmp_path: Path) -> None:
    down = cloud()
    down.reports = [replace(each, enabled=False) for each in down.reports]
    reasons = explain(tmp_path, spec(6), of=down)
    assert reasons.sentence == (
        "3 of 4 hosts have candidates in placement; none of these is enabled and up; "
        "the closest, host1, is disabled"
    )
    assert reasons.public == ("no host that has room for it with all that is asked for is enabled and up")
    assert [(each.host, each.text) for each in reasons.misses] == [
        (f"host{number}", "is disabled") for number in (1, 2, 3)
    ]
    assert [(each.kind, each.name) for each in reasons.relaxations] == [("filter", "ComputeFilter")]


def test_no_change_is_told_that_admits_a_host_without_a_weight(tmp_path: Path) -> None:
    made = cloud()
    made.reports = [replace(each, enabled=False, metrics={"heat": 20.0}) for each in made.reports]
    options = SchedulerOptions(plugins=by_metrics({"heat": -1.0}))
    reasons = explain(tmp_path, spec(6), of=made, options=options)
    assert [each.text for each in reasons.relaxations] == ["without ComputeFilter"]
    made.reports[2] = replace(made.reports[2], metrics={})
    assert explain(tmp_path / "other", spec(6), of=made, options=options).relaxations == ()


def test_several_instances_that_do_not_fit_together(tmp_path: Path) -> None:
    reasons = explain(tmp_path, spec(8), 3)
    assert (reasons.placed, reasons.left) == (2, 0)
    assert reasons.sentence.startswith("only 2 of 3 instances fit: ")
    assert {each.kind: each.after for each in reasons.relaxations}["count"] == 2


def test_instances_that_fill_the_hosts_are_a_stage_of_their_own(tmp_path: Path) -> None:
    reasons = explain(tmp_path, spec(8), 3, of=flat(2))
    room = "none of 2 hosts has room beside the other instances"
    assert reasons.sentence.startswith(f"only 2 of 3 instances fit: {room}")
    assert [(each.kind, each.hosts) for each in reasons.stages if each.hosts] == [("candidate", 2)]


def test_instances_beside_one_another_are_assigned_different_cpus(tmp_path: Path) -> None:
    made = flat(2, vcpus=64)
    made.reports = [replace(each, numa_topology=two_cells()) for each in made.reports]
    options = SchedulerOptions(filters=(*DEFAULT_FILTERS, "NUMATopologyFilter"))
    wanted = spec(4, extra_specs={"hw:numa_nodes": "1", "hw:cpu_policy": "dedicated"})
    for provider in made.providers:
        provider.inventories["PCPU"] = Inventory(64)
    reasons = explain(tmp_path, wanted, 6, of=made, options=options)
    assert reasons.placed == 4
    assert "2 hosts has room in NUMA cells for the guest" in reasons.sentence
    assert {each.kind: each.after for each in reasons.relaxations}["count"] == 4


@pytest.mark.parametrize("number", [1, 3])
def test_what_answers_tell_is_told_in_the_words_of_a_ledger(tmp_path: Path, number: int) -> None:
    down = flat(3)
    down.reports = [replace(each, enabled=False) for each in down.reports]
    down.reports[0] = replace(down.reports[0], enabled=True)
    wanted = replace(spec(2), ignore_hosts=frozenset({"host0"}))

    async def by_the_ledger() -> Reasons | None:
        async with filled(tmp_path / "ledger.db", down) as ledger:
            gateway = LocalGateway(ledger, HostPools(down.table()))
            return await Scheduler(gateway, Kept(), clock=lambda: NOW).explain(wanted, number)

    here, there = asyncio.run(by_the_ledger()), explain(tmp_path, wanted, number, of=down)
    assert here is not None
    for name in ("sentence", "public", "placed", "misses", "relaxations", "left"):
        assert getattr(here, name) == getattr(there, name), name


def test_a_full_server_group_is_told_with_the_limit_that_helps(tmp_path: Path) -> None:
    group = ServerGroup(uuid_of(0xF00), "anti-affinity", (), 1)
    reasons = explain(tmp_path, replace(spec(2), group=group), 3, of=flat(2))
    assert reasons.placed == 2
    assert "2 hosts has room for another member of the server group" in reasons.sentence
    assert ("group", 2) in [(each.kind, each.after) for each in reasons.relaxations]


def test_what_fits_is_said_with_weights(tmp_path: Path) -> None:
    reasons = explain(tmp_path, spec(2), 3)
    assert reasons.sentence.startswith("it fits: 3 hosts may be used")
    assert reasons.weighed


def works(fleet: Fleet, cloud: Cloud, ask: Ask, change: Relaxation) -> bool:
    """Whether the first instance of a request is placed with a change, by a decision on the state itself."""
    table, options = cloud.table(), SchedulerOptions()
    wanted = placement_queries(ask.spec, FilterFacts(table, options))
    asked = HostRequest(ask.spec, ask.instances[:1])
    request = SchedulingRequest.of(asked, wanted, options, NOW)
    pools = HostPools(table, options)
    snapshot = FleetSnapshot(fleet, pools)
    changed, filters = applied(snapshot, request, pools.plugins.filters, change)
    return snapshot.works(changed, filters, None) is not None


async def check(ledger: Ledger, cloud: Cloud, ask: Ask) -> None:
    async with over_http(ledger) as placement:
        scheduler = Scheduler(HttpGateway(placement, HostPools(cloud.table())), Kept(), clock=lambda: NOW)
        before = (await ledger.current()).version
        try:
            reasons = await scheduler.explain(ask.spec, 1)
        except BadRequestSpec:
            return
        assert reasons is not None
        assert sum(stage.hosts for stage in reasons.stages) + reasons.left == reasons.hosts
        fleet = (await ledger.current()).fork()
        assert fleet.version == before
        for change in reasons.relaxations:
            assert works(fleet, cloud, ask, change), change


@pytest.mark.parametrize("examples", [8, pytest.param(600, marks=pytest.mark.nightly)])
def test_each_change_that_is_told_works(empty_database: Path, examples: int) -> None:
    @settings(deadline=None, max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(clouds(), asks(0))
    def explained(cloud: Cloud, ask: Ask) -> None:
        async def run() -> None:
            with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
                async with filled(Path(folder) / "roost.db", cloud, empty_database) as ledger:
                    await check(ledger, cloud, ask)

        asyncio.run(run())

    explained()

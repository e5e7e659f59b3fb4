"""Why placement over HTTP has no host: all counts add up, and each change that is told really works."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from roost.fleet.constraint import constraints_of, with_amount, without
from roost.ledger import Ledger
from roost.model.reasons import Reasons, Relaxation
from roost.model.spec import RequestSpec
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.explain.fleet_snapshot import FleetSnapshot
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters import FilterFacts
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from scheduler.gateways.test_same_answers import MEMORY
from support.clouds import NOW, Ask, Cloud, Kept, Provider, asks, clouds, filled, flat, over_http, spec
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

    async def main() -> Reasons:
        async with filled(folder / "roost.db", of or cloud()) as ledger, over_http(ledger) as placement:
            table = (of or cloud()).table()
            scheduler = Scheduler(
                HttpGateway(placement, HostPools(table, options)), Kept(), clock=lambda: NOW
            )
            reasons = await scheduler.explain(wanted, count)
            assert reasons is not None
            assert sum(stage.hosts for stage in reasons.stages) + reasons.left == reasons.hosts
            return reasons

    return asyncio.run(main())


def test_a_refusal_names_the_closest_host_and_what_it_lacks(tmp_path: Path) -> None:
    reasons = explain(tmp_path, spec(6, extra_specs=FAST))
    assert reasons.sentence == (
        "placement has no candidates for it on any of 4 hosts; "
        "the closest, host0, has 4 of the 6 VCPU wanted; it fits with 4 VCPU instead of 6"
    )
    assert [(each.kind, each.text, each.host) for each in reasons.relaxations] == [
        ("amount", "4 VCPU instead of 6", "host0"),
        ("constraint", "without required CUSTOM_FAST", "host1"),
    ]
    assert {miss.host for miss in reasons.misses} == {"host0", "host1", "host2"}
    assert "host" not in reasons.public.replace("no host", "")


def test_a_class_of_which_no_host_has_a_unit_left_is_named(tmp_path: Path) -> None:
    full = flat(2)
    full.providers = [replace_provider(each, frozenset(), {"VCPU": 8}) for each in full.providers]
    reasons = explain(tmp_path, spec(2), of=full)
    assert reasons.sentence == (
        "placement has no candidates for it on any of 2 hosts; the closest, host0, does not meet '2 VCPU'"
    )
    assert reasons.relaxations == ()


def test_filters_are_judged_on_the_node_table(tmp_path: Path) -> None:
    down = cloud()
    down.reports = [replace(each, enabled=False) for each in down.reports]
    reasons = explain(tmp_path, spec(2), of=down)
    assert reasons.sentence == "4 of 4 hosts have candidates in placement; none of these passes ComputeFilter"
    assert [(each.kind, each.name) for each in reasons.relaxations] == [("filter", "ComputeFilter")]


def test_no_change_is_told_that_admits_a_host_without_a_weight(tmp_path: Path) -> None:
    made = cloud()
    made.reports[0] = replace(made.reports[0], metrics={"heat": 20.0})
    made.reports[1] = replace(made.reports[1], metrics={"heat": 20.0})
    options = SchedulerOptions(plugins=by_metrics({"heat": -1.0}))
    reasons = explain(tmp_path, spec(6, extra_specs=FAST), of=made, options=options)
    assert [each.text for each in reasons.relaxations] == ["4 VCPU instead of 6"]


def test_several_instances_that_do_not_fit_together(tmp_path: Path) -> None:
    reasons = explain(tmp_path, spec(8), 3)
    assert (reasons.placed, reasons.left) == (2, 0)
    assert reasons.sentence.startswith("only 2 of 3 instances fit: ")
    assert reasons.relaxations[-1].after == 2


def test_what_fits_is_said_with_weights(tmp_path: Path) -> None:
    reasons = explain(tmp_path, spec(2), 3)
    assert reasons.sentence.startswith("it fits: 3 hosts may be used")
    assert reasons.weighed


def works(ledger_fleet: object, cloud: Cloud, ask: Ask, change: Relaxation) -> bool:
    """Whether the first instance of a request is placed with a change, by a decision on the state itself."""
    table, options = cloud.table(), SchedulerOptions()
    wanted = placement_queries(ask.spec, FilterFacts(table, options))
    named = next((each for each in constraints_of(wanted.query) if str(each) == change.name), None)
    query, plugins = wanted.query, Plugins.enabled(options)
    if change.kind == "amount":
        query = with_amount(query, named, change.after)  # type: ignore[arg-type]
    elif change.kind == "constraint":
        query = without(query, named)  # type: ignore[arg-type]
    else:
        left = [each for each in plugins.filters if each.name != change.name]
        plugins = Plugins(left, plugins.weighers)
    request = SchedulingRequest(
        "run", ask.spec, query, ask.instances[:1], 0, 1, NOW, options, places=wanted.places
    )
    snapshot = FleetSnapshot(ledger_fleet, HostPools(table, options, plugins))  # type: ignore[arg-type]
    return snapshot.works(request, None, None) is not None


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

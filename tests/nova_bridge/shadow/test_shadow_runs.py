"""Shadow mode decides without a claim, and compares with the first claim of Nova's scheduler."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from roost.ledger.holdings import held_by_all
from roost.nova.calls import SelectCall
from roost.nova.instance_facts import InstanceFacts, UnfinishedMigration
from roost.nova.shadow.comparison import Comparison
from roost.nova.shadow.comparison_store import ComparisonStore, read_comparisons
from roost.nova.shadow.shadow_runs import MOST_WAITING, ShadowRuns
from roost.scheduler import SchedulerOptions
from support.clouds import NOW, Cloud, flat, report, uuid_of
from support.nova_specs import made, request_spec
from support.shadow_clouds import SMALL, ShadowCloud, shadow_cloud

ONE, TWO = uuid_of(0xA0), uuid_of(0xA1)

Work = Callable[[ShadowCloud, ShadowRuns], Awaitable[None]]


@pytest.fixture(params=[False, True], ids=["ledger", "http"])
def within(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., None]:
    """Runs work in shadow mode, on the ledger and over HTTP."""

    def run(cloud: Cloud, work: Work, options: SchedulerOptions | None = None) -> None:
        async def main() -> None:
            async with shadow_cloud(tmp_path, cloud, http=request.param, options=options) as (shadow, runs):
                await work(shadow, runs)

        asyncio.run(main())

    return run


def call(*instances: str, **spec: Any) -> SelectCall:
    return SelectCall(
        request_spec(num_instances=len(instances), **spec),
        instances or (ONE,),
        request_id="req-1",
        project="project",
    )


def uneven(count: int = 3) -> Cloud:
    """Hosts of which the first has the most memory, the next less, and so on."""
    cloud = flat(count)
    for number, provider in enumerate(cloud.providers):
        memory = provider.inventories["MEMORY_MB"]
        provider.inventories["MEMORY_MB"] = type(memory)(memory.total - 1024 * number)
    return cloud


def test_nothing_is_claimed_and_nothing_counts_as_claimed(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        version = (await shadow.ledger.current()).version
        [found] = await runs.compare(call())
        assert (found.roost_host, found.outcome) == ("host0", "refused_by_nova")
        assert (await shadow.ledger.current()).version == version
        assert shadow.ledger.database.read_now(held_by_all) == {}
        assert not shadow.table.outstanding

    within(uneven(), work)


def test_a_run_has_no_attempt_whose_end_somebody_could_wait_for(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        await runs.compare(call(ONE, TWO))
        [run] = shadow.records.runs
        assert [each.selected.ordinal for each in run.destinations] == [0, 0]
        assert [each.selected.generation for each in run.destinations] == [None, None]
        assert shadow.records.attempts == []

    within(uneven(), work)


def test_the_same_host(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        shadow.when_asleep = [(ONE, {uuid_of(0): SMALL})]
        [found] = await runs.compare(call())
        assert found == Comparison(
            run=found.run,
            instance=ONE,
            at=NOW,
            request_id="req-1",
            project="project",
            flavor="small",
            outcome="same",
            roost_host="host0",
            nova_host="host0",
            roost_weight=found.roost_weight,
            nova_weight=found.roost_weight,
        )
        assert found.run == shadow.records.runs[-1].id
        assert await shadow.stored() == [found]

    within(uneven(), work)


def test_another_host_of_the_same_weight_is_a_tie(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        shadow.when_asleep = [(ONE, {uuid_of(2): SMALL})]
        [found] = await runs.compare(call())
        assert (found.outcome, found.roost_host, found.nova_host) == ("tie", "host0", "host2")
        assert (found.cause, found.reason) == ("", "")

    within(flat(3), work)


def test_another_host_that_weighs_less_has_the_weigher_that_says_so(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        shadow.when_asleep = [(ONE, {uuid_of(2): SMALL})]
        [found] = await runs.compare(call())
        assert (found.outcome, found.cause) == ("other", "RAMWeigher")
        assert found.reason == "host0 weighs 3, host2 2.75: RAMWeigher +0.25"
        assert (found.roost_weight, found.nova_weight) == (3.0, 2.75)

    within(uneven(), work)


def test_one_of_the_best_hosts_is_a_tie_where_both_draw_from_them(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        shadow.when_asleep = [(ONE, {uuid_of(2): SMALL})]
        [found] = await runs.compare(call())
        assert found.outcome == "other"
        shadow.when_asleep = [(TWO, {uuid_of(1): SMALL})]
        [found] = await runs.compare(call(TWO))
        assert found.outcome == ("same" if found.roost_host == "host1" else "tie")

    within(uneven(), work, SchedulerOptions(host_subset_size=2))


def test_a_host_that_a_filter_leaves_out_has_the_filter(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        shadow.when_asleep = [(ONE, {uuid_of(1): SMALL})]
        [found] = await runs.compare(call())
        assert (found.outcome, found.cause) == ("other", "ComputeFilter")
        assert found.reason == "ComputeFilter leaves out host1"

    cloud = flat(2)
    down = [report("host0", uuid_of(0)), report("host1", uuid_of(1), last_seen=NOW - 1000)]
    within(Cloud(cloud.providers, down), work)


def test_a_host_that_the_request_excludes(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        shadow.when_asleep = [(ONE, {uuid_of(0): SMALL})]
        [found] = await runs.compare(call(ignore_hosts=["host0"]))
        assert (found.outcome, found.roost_host) == ("other", "host1")
        assert "host0" in found.reason

    within(flat(2), work)


def test_a_call_that_roost_refuses(within: Callable[..., None]) -> None:
    large = made(
        "Flavor",
        "1.2",
        name="large",
        vcpus=9,
        memory_mb=1024,
        root_gb=10,
        ephemeral_gb=0,
        swap=0,
        extra_specs={},
    )

    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        shadow.when_asleep = [(ONE, {uuid_of(1): SMALL})]
        [found] = await runs.compare(call(flavor=large))
        assert (found.outcome, found.nova_host, found.roost_host) == ("refused_by_roost", "host1", None)
        assert (found.cause, "host1" in found.reason) == ("hosts with candidates", True)
        [both] = await runs.compare(call(TWO, flavor=large))
        assert (both.outcome, both.reason) == ("both_refused", "")

    within(flat(2), work)


def test_a_request_spec_that_cannot_be_read_is_a_refusal(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        [found] = await runs.compare(SelectCall({"nova_object.name": "Nothing"}, (ONE,)))
        assert (found.outcome, found.flavor) == ("both_refused", None)

    within(flat(1), work)


def test_a_host_that_roost_does_not_know(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        shadow.when_asleep = [(ONE, {uuid_of(1): SMALL})]
        [found] = await runs.compare(call())
        assert (found.outcome, found.cause, found.nova_host) == ("other", "unknown node", uuid_of(1))

    cloud = flat(2)
    within(Cloud(cloud.providers, cloud.reports[:1]), work)


def test_instances_of_a_call_are_equal(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        shadow.when_asleep = [(ONE, {uuid_of(1): SMALL}), (TWO, {uuid_of(0): SMALL})]
        found = await runs.compare(call(ONE, TWO))
        assert [each.outcome for each in found] == ["same", "same"]
        assert {each.instance for each in found} == {ONE, TWO}

    within(flat(2), work)


def test_a_claim_that_is_there_before_the_decision_is_late(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        await shadow.claim(ONE, 0)
        [found] = await runs.compare(call())
        assert found.late
        assert found.nova_host == "host0"

    within(uneven(), work)


def test_the_host_that_an_evacuated_instance_leaves_is_not_its_claim(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        await shadow.claim(ONE, 2)
        leaving = UnfinishedMigration(TWO, "evacuation", "host2", "host2")
        shadow.known[ONE] = InstanceFacts("cell1", "host2", "host2", (leaving,))
        shadow.when_asleep = [(ONE, {uuid_of(2): SMALL, uuid_of(0): SMALL})]
        [found] = await runs.compare(call(ignore_hosts=["host2"]))
        assert (found.outcome, found.nova_host, found.late) == ("same", "host0", False)

    within(uneven(), work)


def test_a_rebuild_is_not_compared(within: Callable[..., None]) -> None:
    async def work(shadow: ShadowCloud, runs: ShadowRuns) -> None:
        hints = {"_nova_check_type": ["rebuild"]}
        assert await runs.compare(call(scheduler_hints=hints, instance_uuid=ONE)) == []

    within(flat(1), work)


def test_taken_calls_are_compared_beside_each_other_and_bounded(tmp_path: Path) -> None:
    async def main() -> None:
        async with shadow_cloud(tmp_path, flat(1)) as (shadow, runs):
            for number in range(MOST_WAITING + 5):
                runs.take(call(uuid_of(0x1000 + number)))
            while len(await shadow.stored()) < MOST_WAITING:
                await asyncio.sleep(0.05)
            assert len(await shadow.stored()) == MOST_WAITING

    asyncio.run(main())


def test_old_comparisons_are_removed(tmp_path: Path) -> None:
    async def main() -> None:
        async with shadow_cloud(tmp_path, flat(1)) as (shadow, _):
            old = Comparison(run="r", instance=ONE, at=NOW - 31 * 86_400, outcome="same")
            await ComparisonStore(shadow.bridge, lambda: NOW - 86_400).put([old])
            assert await shadow.stored() == [old]
            await ComparisonStore(shadow.bridge, lambda: NOW).put(
                [Comparison(run="s", instance=ONE, at=NOW, outcome="same")]
            )
            assert [each.run for each in await shadow.stored()] == ["s"]
            assert await shadow.bridge.read(read_comparisons(NOW + 1)) == []

    asyncio.run(main())

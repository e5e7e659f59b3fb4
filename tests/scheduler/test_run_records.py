"""The record of a run: what was claimed, or how many hosts each step left and why it was refused."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from roost.model.inventory import Inventory
from roost.model.request import RequestGroup
from roost.model.spec import Image
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import (
    GPU,
    NOW,
    Kept,
    Provider,
    filled,
    flat,
    replace_report,
    report,
    spec,
    uuid_of,
)
from support.scheduling import INSTANCES, Room, Within


def test_run_and_attempts_are_recorded(within: Within) -> None:
    async def work(room: Room) -> None:
        await room.place(2, 1)
        [run] = room.kept.runs
        assert (run.request_id, run.project_id, run.user_id) == ("req-1", "project", "user")
        assert run.instances == tuple(INSTANCES[:2])
        assert (run.started_at, run.finished_at, run.refusal) == (NOW, NOW, None)
        assert run.version == (await room.ledger.current()).version - 1
        steps = [(step.name, step.left) for step in run.steps]
        assert steps[0] == ("hosts known", 2)
        assert steps[-7:] == [
            ("hosts with candidates", 2),
            ("ComputeFilter", 2),
            ("AvailabilityZoneFilter", 2),
            ("ComputeCapabilitiesFilter", 2),
            ("ImagePropertiesFilter", 2),
            ("ServerGroupAntiAffinityFilter", 2),
            ("ServerGroupAffinityFilter", 2),
        ]
        assert [(each.instance, each.host, each.result, each.run) for each in room.kept.attempts] == [
            (INSTANCES[0], "host0", "pending", run.id),
            (INSTANCES[1], "host1", "pending", run.id),
        ]

    within(flat(2), work)


@pytest.mark.parametrize("alternates", [0, 1, 5])
def test_record_has_what_makes_up_the_weights_of_the_first_destination(
    within: Within, alternates: int
) -> None:
    async def work(room: Room) -> None:
        await room.place(2, alternates)
        [run] = room.kept.runs
        placed = run.destinations[0]
        chosen = (placed.selected, *placed.alternates)[:4]
        assert [(one.host, one.weight) for one in run.weighed] == [(one.host, one.weight) for one in chosen]
        for one in run.weighed:
            # No build failed and no metrics are reported: those weighers tell no difference.
            assert {number.weigher for number in one.numbers} == {"RAMWeigher", "CPUWeigher", "DiskWeigher"}
            assert sum(each.normalised * each.multiplier for each in one.numbers) == one.weight

    cloud = flat(6)
    for number, vcpus in enumerate([8, 4, 6, 2, 3, 5]):
        cloud.providers[number].inventories["VCPU"] = Inventory(vcpus)
        cloud.providers[number].inventories["MEMORY_MB"] = Inventory(1024 * (vcpus - number % 2))
    within(cloud, work)


def test_decision_can_be_made_again_with_the_seed_of_its_record(tmp_path: Path, empty_database: Path) -> None:
    options = SchedulerOptions(host_subset_size=7)

    async def decided(name: str, seeds: Callable[[], int] | None) -> tuple[list[str], int | None]:
        kept, cloud = Kept(), flat(9)
        async with filled(tmp_path / name, cloud, empty_database) as ledger:
            scheduler = Scheduler(
                LocalGateway(ledger, HostPools(cloud.table(), options)), kept, lambda: NOW, seeds=seeds
            )
            placed = await scheduler.select_destinations(HostRequest.new(spec(), 6, 1))
        hosts = [each.host for one in placed for each in (one.selected, *one.alternates)]
        return hosts, kept.runs[0].seed

    hosts, seed = asyncio.run(decided("first.db", None))
    assert seed is not None
    assert asyncio.run(decided("again.db", lambda: seed)) == (hosts, seed)


def test_refused_run_says_how_many_hosts_each_step_left(within: Within) -> None:
    cloud = flat(4)
    cloud.reports[3] = replace_report(cloud.reports[3], enabled=False)
    cloud.providers[0].inventories["DISK_GB"] = Inventory(5)
    cloud.providers[1].traits = frozenset({DISABLED_TRAIT})

    async def work(room: Room) -> None:
        assert await room.refusal(ignore_hosts=frozenset({"host2"})) == (
            "1 of 4 hosts is enabled, has 10 DISK_GB free and is none of the ignored hosts; "
            "that one, host3, is disabled; it fits with 5 DISK_GB instead of 10"
        )
        [run] = room.kept.runs
        [reasons] = room.kept.reasons
        assert [(stage.name, stage.hosts) for stage in reasons.reasons.stages] == [
            ("1 VCPU", 0),
            ("1024 MEMORY_MB", 0),
            ("10 DISK_GB", 1),
            (f"root forbids {DISABLED_TRAIT}", 1),
            ("ignore_hosts", 1),
            ("ComputeFilter", 1),
        ]
        assert [(step.name, step.left) for step in run.steps] == [
            ("hosts known", 4),
            ("hosts with candidates", 2),
            ("ignore_hosts", 1),
            ("ComputeFilter", 0),
        ]
        assert run.refusal == "no host left after ComputeFilter"

    within(cloud, work)


def test_refusal_by_placement_names_the_class(within: Within) -> None:
    async def work(room: Room) -> None:
        assert await room.refusal(1, 0, 99) == (
            "none of 2 hosts has 99 VCPU free; the closest, host0, has 8 of the 99 VCPU wanted; "
            "it fits with 8 VCPU instead of 99"
        )

    within(flat(2), work)


def test_refusal_by_placement_names_the_group(within: Within) -> None:
    cloud = flat(2)
    cloud.providers[0].inventories.pop("DISK_GB")
    cloud.providers.append(Provider(uuid_of(7), {GPU: Inventory(1)}, uuid_of(0)))
    group = RequestGroup({GPU: 1}, "_port")

    async def work(room: Room) -> None:
        assert await room.refusal(requested_resources=(group,)) == (
            "1 of 2 hosts has 10 DISK_GB free on one provider; "
            "that one does not have 1 CUSTOM_GPU free on one provider for group _port"
        )

    within(cloud, work)


def test_groups_of_one_tree_that_do_not_go_together_are_said_so(within: Within) -> None:
    cloud = flat(1)
    cloud.providers.append(Provider(uuid_of(7), {GPU: Inventory(1)}, uuid_of(0)))
    groups = (RequestGroup({GPU: 1}, "_port1"), RequestGroup({GPU: 1}, "_port2"))

    async def work(room: Room) -> None:
        reason = await room.refusal(requested_resources=groups)
        assert reason.startswith("the only host known does not have all that is asked for at once; ")

    within(cloud, work)


def test_host_that_placement_knows_and_no_agent_reports(within: Within) -> None:
    cloud = flat(2)
    del cloud.reports[1]

    async def work(room: Room) -> None:
        assert await room.place(1, 2) == ["host0"]
        reason = await room.refusal(1, 0, ignore_hosts=frozenset({"host0"}))
        assert reason == "the only host known, host0, is one of the ignored hosts"

    within(cloud, work)
    cloud.reports.clear()

    async def nobody(room: Room) -> None:
        assert await room.refusal() == "no host is known"

    within(cloud, nobody)


def test_host_that_reports_and_placement_does_not_know(within: Within) -> None:
    cloud = flat(1)
    cloud.reports.insert(0, report("ghost", uuid_of(99)))

    async def work(room: Room) -> None:
        assert await room.place() == ["host0"]

    within(cloud, work)
    cloud.providers.append(Provider(uuid_of(50), cloud.providers.pop().inventories))

    async def only_others(room: Room) -> None:
        assert await room.refusal() == (
            "placement is being filled: 2 of 2 hosts that report have no provider there"
        )

    within(cloud, only_others)


@pytest.mark.parametrize(
    "extra_specs", [{"resources:CUSTOM_NOTHING": "1"}, {"trait:CUSTOM_NOTHING": "required"}]
)
def test_name_that_placement_does_not_know(within: Within, extra_specs: dict[str, str]) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(BadRequestSpec, match="CUSTOM_NOTHING"):
            await room.place(extra_specs=extra_specs)
        [run] = room.kept.runs
        assert re.fullmatch("placement cannot serve the request: .*CUSTOM_NOTHING.", run.refusal)

    within(flat(1), work)


def test_bad_request_spec_is_recorded(within: Within) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(BadRequestSpec):
            await room.place(requested_host="host9")
        [run] = room.kept.runs
        assert (run.refusal, run.steps) == ("requested host 'host9' is unknown", ())

    within(flat(1), work)


def test_secrets_are_not_recorded(within: Within) -> None:
    async def work(room: Room) -> None:
        await room.place(
            scheduler_hints={"admin_password": ("hunter2",)},
            image=Image(properties={"source": "https://user:hunter2@images/one"}),
            extra_specs={"note": "token=hunter2"},
        )
        await room.refusal(1, 0, 99, scheduler_hints={"api_key": ("hunter2",)})
        assert "hunter2" not in str(room.kept.runs)
        assert room.kept.runs[0].spec["project_id"] == "project"

    within(flat(1), work)

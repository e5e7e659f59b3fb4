"""`select_destinations` with a ledger: claims, refusals, and what is recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.model.host import HostAggregate
from roost.model.inventory import Inventory
from roost.model.request import RequestGroup
from roost.model.vocabulary import DISABLED_TRAIT
from roost.placement.commands.allocations import WriteAllocations
from roost.placement.errors import ConcurrentUpdate
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.gateways.local import LocalGateway
from support.clouds import (
    AGGREGATES,
    GPU,
    NOW,
    Cloud,
    Kept,
    Provider,
    filled,
    flat,
    holding,
    replace_report,
    report,
    spec,
    uuid_of,
)

T = TypeVar("T")
INSTANCES = [uuid_of(0xA0 + number) for number in range(9)]


class Room:
    """A scheduler on a ledger, its records, and what is held."""

    def __init__(self, ledger: Ledger, cloud: Cloud, options: SchedulerOptions | None) -> None:
        self.ledger = ledger
        self.kept = Kept()
        gateway = LocalGateway(ledger, lambda n: 0)
        self.scheduler = Scheduler(gateway, cloud.table(), self.kept, options, lambda: NOW)

    async def place(self, count: int = 1, alternates: int = 0, *args: int, **more: Any) -> list[str]:
        names = INSTANCES[:count]
        min_count = more.pop("min_count", None)
        destinations = await self.scheduler.select_destinations(
            spec(*args, **more), count, alternates, instances=names, min_count=min_count, request_id="req-1"
        )
        return [each.selected.host for each in destinations]

    async def refusal(self, *args: Any, **more: Any) -> str:
        with pytest.raises(NoValidHost) as error:
            await self.place(*args, **more)
        assert error.value.run == self.kept.runs[-1].id
        assert error.value.steps == self.kept.runs[-1].steps
        return error.value.reason

    def held(self) -> dict[str, dict[str, dict[str, int]]]:
        held = self.ledger.database.read_now(held_by_all)
        return {consumer: one.allocations for consumer, one in held.items() if consumer in INSTANCES}


@pytest.fixture
def within(tmp_path: Path, empty_database: Path) -> Callable[..., Any]:
    def run(cloud: Cloud, work: Callable[[Room], Awaitable[T]], options: SchedulerOptions | None = None) -> T:
        async def main() -> T:
            async with filled(tmp_path / "roost.db", cloud, empty_database) as ledger:
                return await work(Room(ledger, cloud, options))

        return asyncio.run(main())

    return run


Within = Callable[..., Any]


def test_what_is_selected_is_claimed(within: Within) -> None:
    async def work(room: Room) -> None:
        assert await room.place(2, 1, 2, 2048, 20) == ["host0", "host1"]
        claim = {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 20}
        assert room.held() == {INSTANCES[0]: {uuid_of(0): claim}, INSTANCES[1]: {uuid_of(1): claim}}

    within(flat(3), work)


def test_all_or_nothing_leaves_nothing_claimed(within: Within) -> None:
    async def work(room: Room) -> None:
        assert await room.refusal(5, 0, 4) == "only 4 of 5 instances fit: every host left is full"
        assert room.held() == {}
        assert await room.place(5, 0, 4, min_count=3) == ["host0", "host1", "host0", "host1"]
        assert set(room.held()) == set(INSTANCES[:4])

    within(flat(2), work)


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
        assert steps[-6:] == [
            ("hosts with candidates", 2),
            ("compute_up", 2),
            ("availability_zone", 2),
            ("aggregate_extra_specs", 2),
            ("server_group_anti_affinity", 2),
            ("server_group_affinity", 2),
        ]
        assert [(each.instance, each.host, each.result, each.run) for each in room.kept.attempts] == [
            (INSTANCES[0], "host0", "claimed", run.id),
            (INSTANCES[1], "host1", "claimed", run.id),
        ]

    within(flat(2), work)


def test_refused_run_says_how_many_hosts_each_step_left(within: Within) -> None:
    cloud = flat(4)
    cloud.reports[3] = replace_report(cloud.reports[3], enabled=False)
    cloud.providers[0].inventories["DISK_GB"] = Inventory(5)
    cloud.providers[1].traits = frozenset({DISABLED_TRAIT})

    async def work(room: Room) -> None:
        assert await room.refusal(ignore_hosts=frozenset({"host2"})) == "no host left after compute_up"
        [run] = room.kept.runs
        assert [(step.name, step.left) for step in run.steps] == [
            ("hosts known", 4),
            ("1 VCPU", 4),
            ("1024 MEMORY_MB", 4),
            ("10 DISK_GB", 3),
            (f"root forbids {DISABLED_TRAIT}", 2),
            ("hosts with candidates", 2),
            ("ignore_hosts", 1),
            ("compute_up", 0),
        ]
        assert run.refusal == "no host left after compute_up"

    within(cloud, work)


def test_refusal_by_placement_names_the_class(within: Within) -> None:
    async def work(room: Room) -> None:
        assert await room.refusal(1, 0, 99) == "no host left after 99 VCPU"

    within(flat(2), work)


def test_refusal_by_placement_names_the_group(within: Within) -> None:
    cloud = flat(2)
    cloud.providers[0].inventories.pop("DISK_GB")
    cloud.providers.append(Provider(uuid_of(7), {GPU: Inventory(1)}, uuid_of(0)))
    group = RequestGroup({GPU: 1}, "_port")

    async def work(room: Room) -> None:
        assert (
            await room.refusal(requested_resources=(group,)) == "no host left after group _port: 1 CUSTOM_GPU"
        )

    within(cloud, work)


def test_groups_of_one_tree_that_do_not_go_together_are_said_so(within: Within) -> None:
    cloud = flat(1)
    cloud.providers.append(Provider(uuid_of(7), {GPU: Inventory(1)}, uuid_of(0)))
    groups = (RequestGroup({GPU: 1}, "_port1"), RequestGroup({GPU: 1}, "_port2"))

    async def work(room: Room) -> None:
        reason = await room.refusal(requested_resources=groups)
        assert reason == "no host left after everything from one tree at once"

    within(cloud, work)


def test_host_that_placement_knows_and_no_agent_reports(within: Within) -> None:
    cloud = flat(2)
    del cloud.reports[1]

    async def work(room: Room) -> None:
        assert await room.place(1, 2) == ["host0"]
        reason = await room.refusal(1, 0, ignore_hosts=frozenset({"host0"}))
        assert reason == "no host left after ignore_hosts"

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
        assert await room.refusal() == "placement has no candidates on the hosts that are known"

    within(cloud, only_others)


def test_requested_host(within: Within) -> None:
    async def work(room: Room) -> None:
        assert await room.place(2, 2, requested_host="host1") == ["host1", "host1"]
        assert room.kept.attempts[0].host == "host1"

    within(flat(3), work)


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        ({"ignore_hosts": frozenset({"host1"})}, "no host left after ignore_hosts"),
        ({"availability_zone": "az1"}, "no host left after availability_zone"),
    ],
)
def test_requested_host_must_do_in_every_other_way(
    within: Within, wishes: dict[str, Any], reason: str
) -> None:
    async def work(room: Room) -> None:
        assert await room.refusal(requested_host="host1", **wishes) == reason

    within(flat(3), work)


def test_zone_in_placement_and_in_the_filter(within: Within) -> None:
    cloud = flat(3)
    zone = HostAggregate(AGGREGATES[0], "zone", {"availability_zone": "az1"})
    cloud.reports[2] = replace_report(cloud.reports[2], aggregates=(zone,))
    cloud.providers[2].aggregates = frozenset({AGGREGATES[0]})

    async def work(room: Room) -> None:
        assert await room.place(availability_zone="az1") == ["host2"]

    within(cloud, work)


def test_zone_with_granular_groups_only(within: Within) -> None:
    zone = HostAggregate(AGGREGATES[0], "zone", {"availability_zone": "az1"})
    cloud = Cloud(
        [
            Provider(uuid_of(0), {}),
            Provider(uuid_of(1), {}, aggregates=frozenset({AGGREGATES[0]})),
            Provider(uuid_of(10), {"VCPU": Inventory(4)}, uuid_of(0)),
            Provider(uuid_of(11), {"VCPU": Inventory(4)}, uuid_of(1)),
        ],
        [report("host0", uuid_of(0)), report("host1", uuid_of(1), aggregates=(zone,))],
    )
    extra = {"resources:MEMORY_MB": "0", "resources:DISK_GB": "0", "resources_cpu:VCPU": "2"}

    async def work(room: Room) -> None:
        assert await room.place(extra_specs=extra, availability_zone="az1") == ["host1"]
        assert room.held() == {INSTANCES[0]: {uuid_of(11): {"VCPU": 2}}}

    within(cloud, work)


def test_instance_that_holds_something_already(within: Within) -> None:
    async def work(room: Room) -> None:
        mine = {uuid_of(0): {"VCPU": 1}}
        await room.ledger.execute(WriteAllocations((holding(INSTANCES[1], mine),)))
        with pytest.raises(ConcurrentUpdate):
            await room.place(2)
        assert room.held() == {INSTANCES[1]: mine}
        [run] = room.kept.runs
        assert run.refusal is not None
        assert "consumer generation conflict" in run.refusal

    within(flat(2), work)


@pytest.mark.parametrize(
    "extra_specs", [{"resources:CUSTOM_NOTHING": "1"}, {"trait:CUSTOM_NOTHING": "required"}]
)
def test_name_that_placement_does_not_know(within: Within, extra_specs: dict[str, str]) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(BadRequestSpec, match="CUSTOM_NOTHING"):
            await room.place(extra_specs=extra_specs)
        [run] = room.kept.runs
        assert run.refusal == "placement knows no resource class or trait CUSTOM_NOTHING"

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
            scheduler_hints={"admin_password": "hunter2"},
            image_properties={"source": "https://user:hunter2@images/one"},
            extra_specs={"note": "token=hunter2"},
        )
        await room.refusal(1, 0, 99, scheduler_hints={"api_key": "hunter2"})
        assert "hunter2" not in str(room.kept.runs)
        assert room.kept.runs[0].spec["project_id"] == "project"

    within(flat(1), work)


@pytest.mark.parametrize(
    "arguments",
    [
        {"count": 0, "instances": []},
        {"count": 2, "instances": INSTANCES[:1]},
        {"count": 2, "instances": [INSTANCES[0]] * 2},
        {"count": 2, "min_count": 3},
        {"count": 2, "min_count": 0},
        {"count": 1, "num_alternates": -1},
    ],
)
def test_arguments_that_do_not_go_together(within: Within, arguments: dict[str, Any]) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(ValueError, match="do not go together"):
            await room.scheduler.select_destinations(spec(), **arguments)

    within(flat(1), work)


def test_instances_are_made_up_if_not_given(within: Within) -> None:
    async def work(room: Room) -> None:
        destinations = await room.scheduler.select_destinations(spec(), 3)
        assert len({each.instance for each in destinations}) == 3
        assert {each.run for each in destinations} == {room.kept.runs[0].id}

    within(flat(1), work)


def test_concurrent_requests_never_oversubscribe(within: Within) -> None:
    async def work(room: Room) -> None:
        async def one() -> bool:
            try:
                await room.scheduler.select_destinations(spec(2), 1)
            except NoValidHost:
                return False
            return True

        placed = await asyncio.gather(*(one() for _ in range(30)))
        assert sum(placed) == 12

    within(flat(3), work)

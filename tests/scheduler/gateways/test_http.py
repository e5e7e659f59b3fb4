"""Placement over HTTP: claims, and refusals of a host that lead to the next one."""

from typing import Any

import httpx
import msgspec
import pytest

from roost.ledger import Ledger
from roost.model.inventory import Inventory
from roost.model.request import RequestGroup
from roost.placement.commands.allocations import WriteAllocations
from roost.placement.errors import ConcurrentUpdate
from roost.scheduler import NoValidHost
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.gateways.claim_writes import ATTEMPTS
from support.clouds import Provider, flat, holding, uuid_of
from support.wire import INSTANCES, Answer, Room, Within, at_claims, claims_of, refused


def test_claims_are_made_for_new_consumers(within: Within) -> None:
    async def work(room: Room) -> None:
        one, two = await room.place(2, 1)
        assert (one.selected.host, two.selected.host) == ("host0", "host1")
        assert [other.host for other in one.alternates] == ["host2"]
        assert set(room.held()) == set(INSTANCES[:2])
        assert room.wire.asked == ["GET /allocation_candidates", "POST /allocations"]
        [run] = room.kept.runs
        assert run.version is None
        assert [(step.name, step.left) for step in run.steps][:3] == [
            ("hosts known", 3),
            ("hosts with candidates", 3),
            ("ComputeFilter", 3),
        ]

    within(flat(3), work)


CAPACITY = refused(409, "placement.undefined_code", "Unable to allocate inventory: no room")

GENERATION = refused(409, "placement.concurrent_update", "resource provider generation conflict")

CONSUMER = refused(
    409, "placement.concurrent_update", "consumer generation conflict - expected 3 but got null"
)


def test_refusal_goes_to_the_next_host(within: Within) -> None:
    async def work(room: Room) -> None:
        [one] = await room.place()
        assert one.selected.host == "host2"
        first, second, third = room.tries()
        assert (first[0], second[0], third) == ("host0", "host1", ("host2", "pending", None))
        assert first[1] == "refused"
        assert first[2] is not None
        assert "\n" not in first[2]

    within(flat(3), work, at_claims(lambda number: CAPACITY if number < 2 else None))


def test_a_claim_that_meets_other_writers_is_made_again(within: Within) -> None:
    async def work(room: Room) -> None:
        [one] = await room.place()
        assert one.selected.host == "host0"
        assert len(room.tries()) == 1
        assert room.wire.asked.count("POST /allocations") == ATTEMPTS

    within(flat(2), work, at_claims(lambda number: GENERATION if number < ATTEMPTS - 1 else None))


def test_where_other_writers_come_first_each_time_the_next_host_is_taken(within: Within) -> None:
    async def work(room: Room) -> None:
        [one] = await room.place()
        assert one.selected.host == "host1"
        assert [result for _, result, _ in room.tries()] == ["refused", "pending"]

    within(flat(2), work, at_claims(lambda number: GENERATION if number < ATTEMPTS else None))


def test_a_claim_names_consumer_type_and_mappings(within: Within) -> None:
    written: list[dict[str, Any]] = []

    async def look(request: httpx.Request) -> Answer:
        if claims_of(request):
            assert request.headers["openstack-api-version"] == "placement 1.39"
            written.extend(msgspec.json.decode(request.content).values())
        return None

    async def work(room: Room) -> None:
        await room.place()
        [claim] = written
        assert (claim["consumer_type"], claim["mappings"]) == ("INSTANCE", {"": [uuid_of(0)]})

    within(flat(1), work, look)


def test_conflict_goes_to_the_next_allocation_request_of_the_host_first(within: Within) -> None:
    cloud = flat(2)
    gpu = {"CUSTOM_GPU": Inventory(1)}
    for number in (7, 8):
        cloud.providers.append(Provider(uuid_of(number), gpu, uuid_of(0)))

    async def work(room: Room) -> None:
        [one] = await room.place(requested_resources=(RequestGroup({"CUSTOM_GPU": 1}, "_port"),))
        assert one.selected.mappings["_port"] == [uuid_of(8)]
        assert [host for host, _, _ in room.tries()] == ["host0", "host0"]

    within(cloud, work, at_claims(lambda number: CAPACITY if number == 0 else None))


def test_somebody_else_was_faster(within: Within) -> None:
    async def work(room: Room) -> None:
        [one] = await room.place()
        assert one.selected.host == "host1"
        [(host, result, reason), _] = room.tries()
        assert (host, result) == ("host0", "refused")
        assert reason is not None
        assert "would exceed the capacity" in reason

    ledgers: list[Ledger] = []

    async def take_all_before(request: httpx.Request) -> Answer:
        if request.method == "POST" and ledgers:
            write = holding(uuid_of(0xBEEF), {uuid_of(0): {"VCPU": 8}})
            await ledgers.pop().execute(WriteAllocations((write,)))
        return None

    async def with_ledger(room: Room) -> None:
        ledgers.append(room.ledger)
        await work(room)

    within(flat(2), with_ledger, take_all_before)


def test_no_host_takes_it(within: Within) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost, match=r"every claim was refused, the last one on host1: .* no room"):
            await room.place()
        assert room.held() == {}

    within(flat(2), work, at_claims(lambda _: CAPACITY))


def test_consumer_that_holds_something_is_an_error_and_keeps_it(within: Within) -> None:
    async def work(room: Room) -> None:
        mine = {uuid_of(0): {"VCPU": 1}}
        await room.ledger.execute(WriteAllocations((holding(INSTANCES[1], mine),)))
        with pytest.raises(ConcurrentUpdate, match="consumer generation conflict"):
            await room.place(2)
        assert room.held() == {INSTANCES[1]: mine}

    within(flat(2), work)
    within(flat(2), work, at_claims(lambda number: CONSUMER if number == 1 else None))


def test_run_that_comes_to_nothing_frees_its_claims(within: Within) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost, match="only 2 of 3 instances fit"):
            await room.place(3, vcpus=8)
        assert room.held() == {}
        assert len(await room.place(3, vcpus=8, min_count=2)) == 2
        assert len(room.held()) == 2

    within(flat(2), work)


@pytest.mark.parametrize(
    "extra_specs", [{"resources:CUSTOM_NOTHING": "1"}, {"trait:CUSTOM_NOTHING": "required"}]
)
def test_name_that_placement_does_not_know(within: Within, extra_specs: dict[str, str]) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(BadRequestSpec, match="CUSTOM_NOTHING"):
            await room.place(extra_specs=extra_specs)

    within(flat(1), work)


def test_limit_is_sent_if_there_is_one(within: Within) -> None:
    async def see(request: httpx.Request) -> Answer:
        if request.method == "GET":
            limits.append(request.url.params.get("limit"))
        return None

    limits: list[str | None] = []

    async def work(room: Room) -> None:
        [one] = await room.place(1, 5)
        found.append(len(one.alternates))

    found: list[int] = []
    within(flat(4), work, see)
    within(flat(4), work, see, 2)
    assert limits == [None, "2"]
    assert found == [3, 1]

"""The work of a decision is bounded: it holds the ledger's writer, and can go to no other process."""

import pytest

from roost.fleet.feasibility import Feasibilities
from roost.fleet.work import WorkBudget
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery
from roost.scheduler.gateways import local
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection import bounds
from roost.scheduler.selection.bounds import TOO_MUCH_WORK
from support.clouds import GPU, Cloud, Provider, flat, uuid_of
from support.scheduling import INSTANCES, Room, Within, spec

NEVER_ALL = (8, 7, 7, 7, 6, 5, 4, 4)
"""Amounts that four devices of twelve units have together, and that go on no device without rest."""


def with_devices(cloud: Cloud, devices: int, units: int) -> Cloud:
    """The cloud with devices below its first host."""
    first = cloud.providers[0].uuid
    below = [Provider(uuid_of(0xD000 + number), {GPU: Inventory(units)}, first) for number in range(devices)]
    return Cloud([*cloud.providers, *below], cloud.reports)


def groups(*amounts: int) -> dict[str, str]:
    """The extra specs of a flavor with a group for each amount."""
    return {f"resources{number}:{GPU}": str(amount) for number, amount in enumerate(amounts)} | {
        "group_policy": "none"
    }


def limit(monkeypatch: pytest.MonkeyPatch, units: int) -> list[WorkBudget]:
    """Let decisions do so much work, and none ahead of them; returns that of each."""
    made: list[WorkBudget] = []

    def work(instances: int, providers: int) -> WorkBudget:
        made.append(WorkBudget(units, kept_units=10**6))
        return made[-1]

    monkeypatch.setattr(local, "decision_work", work)
    monkeypatch.setattr(local, "MOST_UNITS", 0)
    return made


def test_a_decision_that_takes_too_much_work_is_refused_with_that_reason_and_claims_nothing(
    within: Within, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(room: Room) -> None:
        made = limit(monkeypatch, 400)
        assert await room.refusal(extra_specs=groups(*NEVER_ALL)) == TOO_MUCH_WORK
        assert not room.held()
        # What was too much is known, and is not tried again by the next.
        assert await room.refusal(extra_specs=groups(*NEVER_ALL)) == TOO_MUCH_WORK
        first, second = (400 - each.left for each in made)
        assert second < first
        # The writer goes on with others.
        assert await room.place() == ["host0"]

    within(with_devices(flat(1), 4, 12), work)


def test_a_decision_of_several_instances_takes_its_claims_back(
    within: Within, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(room: Room) -> None:
        limit(monkeypatch, 400)
        assert await room.refusal(9, extra_specs=groups(1, 2, 3), min_count=1) == TOO_MUCH_WORK
        assert not room.held()

    within(with_devices(flat(1, vcpus=16, memory_mb=2**20, disk_gb=10_000), 40, 60), work)


def test_work_that_ends_while_alternates_are_looked_for_ends_their_list_and_not_the_decision(
    within: Within, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods for GPUs were refused on a cluster of 1,213 nodes after their host was found."""
    cloud = flat(4)
    for host in range(4):
        root = cloud.providers[host].uuid
        below = [Provider(uuid_of(0xD000 + 8 * host + each), {GPU: Inventory(8)}, root) for each in range(8)]
        cloud = Cloud([*cloud.providers, *below], cloud.reports)

    async def placed(room: Room, units: int, alternates: int) -> tuple[int, int]:
        made = limit(monkeypatch, units)
        [found] = await room.scheduler.select_destinations(
            HostRequest(spec(extra_specs=groups(3, 3)), tuple(INSTANCES[:1]), alternates, request_id="req-1")
        )
        return units - made[-1].left, len(found.alternates)

    alone, _ = within(cloud, lambda room: placed(room, 10**6, 0))
    both, found = within(cloud, lambda room: placed(room, 10**6, 3))
    assert (alone < both, found) == (True, 3)
    _, fewer = within(cloud, lambda room: placed(room, (alone + both) // 2, 3))
    assert 0 < fewer < 3


def test_pairs_in_a_common_subtree_are_decided_on_a_host_of_a_thousand_devices(within: Within) -> None:
    async def work(room: Room) -> None:
        wanted = groups(1, 1) | {"resources2:VCPU": "1"}
        assert await room.place(extra_specs=wanted, same_subtree=(frozenset({"0", "1"}),)) == ["host0"]

    within(with_devices(flat(1), 1_000, 2), work)


def test_flavor_of_hundreds_of_amounts_is_refused_where_a_plain_one_is_decided(within: Within) -> None:
    """What is found out for it is kept, and grows with the amounts: it held the writer for seconds."""

    async def work(room: Room) -> None:
        many = groups(*range(1, 301)) | {"resources:VCPU": "1"}
        assert await room.refusal(extra_specs=many) == TOO_MUCH_WORK
        assert await room.place(extra_specs=groups(1, 2)) == ["host0"]

    within(with_devices(flat(1), 5_000, 300), work)


def test_a_flavor_that_odd_hosts_have_not_seen_is_evaluated_ahead_of_the_decision_in_parts(
    within: Within, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the decision it held the writer, and the whole process: 0.1 s in a region of 1,500 such hosts."""
    cloud = flat(300, memory_mb=2**20, disk_gb=10_000)
    below = [
        Provider(uuid_of(0xD0000 + 8 * number + each), {GPU: Inventory(1 + number)}, root.uuid)
        for number, root in enumerate(cloud.providers)
        for each in range(1 + number % 5)
    ]
    parts: list[int] = []
    evaluate = Feasibilities.evaluate

    def noted(self: Feasibilities, query: CandidateQuery, units: int) -> int | None:
        parts.append(units)
        return evaluate(self, query, units)

    monkeypatch.setattr(Feasibilities, "evaluate", noted)
    monkeypatch.setattr(local, "UNITS", 1_000)

    async def kept_work(room: Room, amount: int, number: int) -> int:
        made: list[WorkBudget] = []

        def work(instances: int, providers: int) -> WorkBudget:
            made.append(WorkBudget(10**6, kept_units=10**6))
            return made[-1]

        monkeypatch.setattr(local, "decision_work", work)
        wanted, instances = spec(extra_specs=groups(amount, amount)), INSTANCES[number : number + 1]
        await room.scheduler.select_destinations(HostRequest(wanted, tuple(instances), 0, request_id="req"))
        assert made[0].kept_left is not None
        return 10**6 - made[0].kept_left

    async def work(room: Room) -> None:
        ahead = await kept_work(room, 3, 0)
        assert len(parts) > 2
        assert max(parts) <= 4_000
        parts.clear()
        await kept_work(room, 3, 1)
        assert not parts, "it is evaluated once"
        monkeypatch.setattr(local, "MOST_UNITS", 0)
        assert 10 * ahead < await kept_work(room, 2, 2)

    within(Cloud([*cloud.providers, *below], cloud.reports), work)


def test_what_decisions_take_is_some_tens_of_milliseconds() -> None:
    one, two = (bounds.decision_work(number, 1_000) for number in (1, 2))
    assert one.left <= 64_000
    assert two.left - one.left == 4_000
    # What is kept has a limit of its own, which grows with the fleet.
    larger = bounds.decision_work(1, 2_000)
    assert one.kept_left and two.kept_left and larger.kept_left
    assert one.kept_left <= 80_000
    assert two.kept_left - one.kept_left == 5_000
    assert larger.kept_left - one.kept_left == 6_000
    assert larger.left == one.left
    # However many instances are asked for, it is less than a tenth of a second.
    assert bounds.decision_work(1_000, 1_000).left <= 100_000

"""Server groups on a placement service that knows none: check, claim, check again, in every order.

The gateway is the real one; the service is a dictionary, each request to which waits until its turn is drawn.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import httpx
import pytest

from roost.ledger import Held
from roost.model.allocation import Consumer
from roost.model.spec import Destination, Selection, ServerGroup
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import CannotAllocate, ConcurrentUpdate
from roost.placement.interface import AllocationRequest, InventoryUsage, Provider, ProviderSummary
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.errors import NoAlternate, PlacementUnavailable
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.replacement import AlternateRequest
from support.clouds import NOW, Kept, flat, spec, uuid_of
from support.seeds import nightly_seed

GROUP = "group"
APART = ServerGroup(GROUP, "anti-affinity")
PAIRS = ServerGroup(GROUP, "anti-affinity", (), 2)
TOGETHER = ServerGroup(GROUP, "affinity")
NO_GROUP_FILTERS = SchedulerOptions(filters=("ComputeFilter",), weighers=())
GROUP_FILTERS = SchedulerOptions(
    filters=("ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter"), weighers=()
)


ASKER: ContextVar[str] = ContextVar("asker")
"""The run that a request to the service is part of: the last digit of its first instance."""

Turn = tuple[str, str]
"""The asker, and what it asks for."""


class Turns:
    """The requests that wait. ``draw`` picks the one that goes on."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._waiting: list[tuple[Turn, asyncio.Future[None]]] = []

    async def take(self, what: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(((ASKER.get(), what), turn))
        await turn

    async def give(self, tasks: Sequence["asyncio.Task[Any]"], first: Sequence[Turn] = ()) -> None:
        """Let requests go on until the tasks end. Until those of ``first`` were made, nothing else goes on
        than what leads to the next of them."""
        wanted = list(first)
        while not all(task.done() for task in tasks):
            for _ in range(8):
                await asyncio.sleep(0)
            if not self._waiting:
                continue
            turns = [turn for turn, _ in self._waiting]
            if not wanted:
                number = self._draw.randrange(len(turns))
            elif wanted[0] in turns:
                number = turns.index(wanted.pop(0))
            else:
                number = next(at for at, turn in enumerate(turns) if turn[0] == wanted[0][0])
            _, turn = self._waiting.pop(number)
            if not turn.done():
                turn.set_result(None)
        assert wanted == [], f"never asked: {wanted}"


@dataclass
class Foreign:
    """A service that judges room and consumer generations alone. ``lost``: claims without an answer."""

    hosts: int
    turns: Turns
    room: int = 9
    lost: set[str] = field(default_factory=set)
    at: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    generation: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)

    def noting(self, moments: object) -> "Foreign":
        return self

    async def group_members(self, group: str) -> None:
        return None

    async def knows_groups(self) -> bool:
        return False

    async def candidates(self, query: object, limit: object = None) -> object:
        await self.turns.take("candidates")
        roots = [uuid_of(number) for number in range(self.hosts)]
        offered = [root for root in roots if self._used(root) < self.room]
        requests = [
            AllocationRequest.of({root: {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}}, {})
            for root in offered
        ]
        levels = {
            "VCPU": InventoryUsage(9, 0),
            "MEMORY_MB": InventoryUsage(99999, 0),
            "DISK_GB": InventoryUsage(9999, 0),
        }
        return requests, {root: ProviderSummary.of(levels, (), None, root) for root in offered}

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None:
        [write] = writes
        await self.turns.take("claim")
        lands = write.consumer not in self.lost or len(self.at) % 2 == 0
        if lands:
            there = self.at.get(write.consumer)
            expected = self.generation[write.consumer] if there else None
            if write.generation != expected:
                raise ConcurrentUpdate(f"consumer generation conflict - {write.generation}, not {expected}")
            if any(self._used(root) >= self.room for root in write.allocations):
                raise CannotAllocate("no room")
            self.at[write.consumer] = dict(write.allocations)
            self.generation[write.consumer] += 1
        if write.consumer in self.lost:
            self.lost.remove(write.consumer)
            raise httpx.ReadTimeout("no answer")

    async def delete_allocations(self, consumers: Sequence[str]) -> None:
        for consumer in consumers:
            await self.turns.take("free")
            self.at.pop(consumer, None)

    async def allocations_of(self, consumer: str) -> Held | None:
        await self.turns.take("look")
        allocations = self.at.get(consumer)
        if allocations is None:
            return None
        return Held(Consumer(consumer, "p", "u", self.generation[consumer]), dict(allocations))

    async def tree(self, uuid: str) -> list[Provider]:
        return [Provider(uuid, uuid, 1, None, uuid)]

    async def provider(self, uuid: str) -> Provider:
        return Provider(uuid, uuid, 1, None, uuid)

    async def traits(self, uuid: str) -> frozenset[str]:
        return frozenset()

    async def consumers_on(self, provider: str) -> frozenset[str]:
        await self.turns.take("look")
        return frozenset(consumer for consumer, held in self.at.items() if provider in held)

    def _used(self, root: str) -> int:
        return sum(root in held for held in self.at.values())

    def hosts_of(self, members: Sequence[str]) -> list[str]:
        return [root for member in members for root in self.at.get(member, ())]


class World:
    """Claimants of one group, each with a scheduler of its own, on one service."""

    def __init__(
        self, group: ServerGroup, hosts: int, seed: str = "", options: SchedulerOptions = GROUP_FILTERS
    ) -> None:
        self.turns = Turns(random.Random(seed))
        self.service = Foreign(hosts, self.turns)
        self.group = group
        self.members: list[str] = []
        self._options = options
        self._hosts = hosts

    def scheduler(self) -> Scheduler:
        async def members(group: str) -> Sequence[str]:
            return tuple(self.members)

        async def sleep(seconds: float) -> None:
            await self.turns.take("sleep")

        pools = HostPools(flat(self._hosts).table(), self._options)
        gateway = HttpGateway(self.service, pools, members, sleep=sleep)  # type: ignore[arg-type]
        return Scheduler(gateway, Kept(), lambda: NOW)

    async def ask(self, instances: Sequence[str]) -> tuple[Destination, ...] | Exception:
        ASKER.set(instances[0][-1])
        self.members += instances
        try:
            return await self.scheduler().select_destinations(
                HostRequest(spec(group=self.group), tuple(instances), 1)
            )
        except (NoValidHost, PlacementUnavailable) as error:
            return error

    def run(
        self, requests: Sequence[Sequence[str]], first: Sequence[Turn] = ()
    ) -> list[tuple[Destination, ...] | Exception]:
        async def race() -> list[tuple[Destination, ...] | Exception]:
            tasks = [asyncio.create_task(self.ask(each)) for each in requests]
            await self.turns.give(tasks, first)
            return [task.result() for task in tasks]

        answers = asyncio.run(race())
        self.check(answers)
        return answers

    def check(self, answers: Sequence[tuple[Destination, ...] | Exception]) -> None:
        """What was answered is held, nothing else is, and the group is whole."""
        placed = {
            each.instance: {each.selected.node}
            for answer in answers
            if not isinstance(answer, Exception)
            for each in answer
        }
        assert {member: set(held) for member, held in self.service.at.items()} == placed
        per_host = Counter(self.service.hosts_of(self.members))
        if self.group.policy == "affinity":
            assert len(per_host) <= 1, f"an affinity group is on {per_host}"
        else:
            assert max(per_host.values(), default=0) <= self.group.max_server_per_host, f"{per_host}"


A, B, C = (uuid_of(number) for number in (0xA, 0xB, 0xC))


def at_once(order: Sequence[str]) -> list[Turn]:
    """All look, then all claim, in this order; the second looks come after that."""
    return [*((asker, "candidates") for asker in order), *((asker, "claim") for asker in order)]


@pytest.mark.parametrize("order", list(permutations("abc")))
def test_of_three_that_collide_the_two_lower_ones_share_a_host(order: Sequence[str]) -> None:
    world = World(PAIRS, hosts=1)
    *lower, highest = world.run([[A], [B], [C]], at_once(order))
    assert not any(isinstance(each, Exception) for each in lower)
    assert isinstance(highest, NoValidHost)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_of_two_that_collide_the_lower_uuid_stays(order: str) -> None:
    """Both have claimed the one host before either looks again."""
    world = World(APART, hosts=1)
    lower, higher = world.run([[A], [B]], at_once(order))
    assert not isinstance(lower, Exception)
    assert isinstance(higher, NoValidHost)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_affine_ones_that_collide_end_with_the_lower_uuid(order: str) -> None:
    """The higher one frees its claim, looks anew, and follows."""
    world = World(TOGETHER, hosts=2)
    world.service.room = 1
    one, other = world.run([[A], [B]], at_once(order))
    assert not isinstance(one, Exception)
    assert isinstance(other, NoValidHost), "there is no room beside the lower one"


def test_a_first_look_at_a_claim_that_is_given_up_is_no_permission() -> None:
    """C finds A and B on two hosts. It follows B, which leaves because A has the lower uuid."""
    world = World(TOGETHER, hosts=2, options=NO_GROUP_FILTERS)
    service = world.service
    world.members = [A, B, C]
    on = [{uuid_of(host): {"VCPU": 1}} for host in range(2)]
    service.at = {A: on[0], B: on[1]}

    async def follow() -> object:
        async def leave() -> None:
            ASKER.set("b")
            await service.turns.take("free")
            del service.at[B]

        task = asyncio.create_task(world.ask([C]))
        await world.turns.give([task, asyncio.create_task(leave())], [("c", "claim"), ("b", "free")])
        return task.result()

    asyncio.run(follow())
    assert len(set(service.hosts_of([A, C]))) == 1


def random_cases(count: int, first: str) -> Iterator[tuple[World, list[list[str]]]]:
    for number in range(count):
        draw = random.Random(f"{first}-{number}")
        group = draw.choice([APART, PAIRS, TOGETHER])
        options = draw.choice([GROUP_FILTERS, NO_GROUP_FILTERS])
        world = World(group, draw.randint(1, 4), f"{first}-{number}", options)
        world.service.room = draw.choice([1, 2, 9])
        names = [uuid_of(0xA0 + each) for each in range(6)]
        draw.shuffle(names)
        requests = [[names.pop() for _ in range(draw.choice([1, 1, 2]))] for _ in range(draw.choice([2, 3]))]
        world.service.lost = {each for one in requests for each in one if draw.random() < 0.15}
        yield world, requests


def race(count: int, seed: str) -> Counter[str]:
    ends: Counter[str] = Counter()
    for world, requests in random_cases(count, seed):
        answers = world.run(requests)
        ends.update("placed" if isinstance(each, tuple) else type(each).__name__ for each in answers)
    return ends


def test_no_order_of_claims_and_looks_breaks_a_group() -> None:
    ends = race(80, "foreign")
    assert min(ends["placed"], ends["NoValidHost"], ends["PlacementUnavailable"]) > 5, ends


@pytest.mark.nightly
def test_no_order_breaks_a_group_at_length() -> None:
    ends = race(4_000, nightly_seed())
    assert ends["placed"] > 2_000


# The use of alternates


def selection(host: int) -> Selection:
    return Selection(
        f"host{host}",
        uuid_of(host),
        "cell1",
        {uuid_of(host): {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}},
        {},
        1.0,
    )


async def swap(world: World, instance: str, failed: int, alternates: Sequence[int]) -> str | None:
    """The host that an alternate is used on; None if there is none."""
    ASKER.set(instance[-1])
    try:
        found = await world.scheduler().use_alternate(
            AlternateRequest(
                spec(group=world.group),
                instance,
                selection(failed),
                tuple(selection(each) for each in alternates),
                reason="it burned",
                run="run",
                request_id="req",
            )
        )
    except NoAlternate:
        return None
    assert found.selected is not None
    return found.selected.node


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_alternates_that_collide(order: str) -> None:
    """Both swap to the one host that both have as an alternate; the higher uuid goes on to its next one."""
    world = World(APART, hosts=4, options=NO_GROUP_FILTERS)
    world.members = [A, B]
    world.service.at = {A: selection(0).allocations, B: selection(1).allocations}

    async def use() -> list[str | None]:
        tasks = [
            asyncio.create_task(swap(world, A, 0, [2, 3])),
            asyncio.create_task(swap(world, B, 1, [2, 3])),
        ]
        await world.turns.give(tasks, at_once(order))
        return [task.result() for task in tasks]

    assert asyncio.run(use()) == [uuid_of(2), uuid_of(3)]
    assert world.service.hosts_of([A, B]) == [uuid_of(2), uuid_of(3)]


def test_swap_that_was_cut_off_before_its_second_look_is_looked_at_again() -> None:
    world = World(APART, hosts=4)
    world.members = [A, B]
    world.service.at = {A: selection(2).allocations, B: selection(2).allocations}

    async def use() -> str | None:
        task = asyncio.create_task(swap(world, B, 1, [2, 3]))
        await world.turns.give([task])
        return task.result()

    assert asyncio.run(use()) == uuid_of(3)

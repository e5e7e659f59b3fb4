"""Two schedulers in two processes on one nearly full fleet: nothing is oversold, no group is broken.

They also free what they placed and move it to alternates, and one of them is killed in the middle.
"""

import asyncio
from collections import Counter, defaultdict

import pytest
import sqlalchemy as sa

from roost.ledger.feed import decode_changes
from roost.ledger.holdings import held_by_all
from roost.ledger.tables import commits
from roost.model.change import AllocationsChanged
from roost.model.spec import ServerGroup
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.storage import Database
from scheduler import group_worker
from scheduler.group_worker import GROUPS, HOSTS, VCPUS
from support.clouds import NOW, Kept, fill, flat, spec
from support.databases import Place
from support.ledgers import findings_in, opened
from support.racing import Racer, race
from support.seeds import nightly_seed

RULES = {group.uuid: group for group in GROUPS}


def run_race(place: Place, count: int, name: str, kill_after: int) -> list[Racer]:
    async def fill_fleet() -> None:
        async with opened(place) as [ledger]:
            await fill(ledger, flat(HOSTS, VCPUS))

    asyncio.run(fill_fleet())
    return race(group_worker.run, place, count, name, kill_after)


def check(place: Place, racers: list[Racer]) -> None:
    """Each commit left a state in which nothing is oversold and no group is broken; the last has all that was
    acknowledged; the tables agree with the commits."""
    database = Database(place.url)
    try:
        held = database.read_now(held_by_all)
        texts = database.read_now(
            lambda connection: connection.execute(sa.select(commits.c.changes).order_by(commits.c.seq)).all()
        )
    finally:
        asyncio.run(database.close())
    on: dict[str, tuple[str | None, str]] = {}
    for (text,) in texts:
        for change in decode_changes(text):
            if isinstance(change, AllocationsChanged):
                on.pop(change.consumer, None)
                if change.holds:
                    assert change.after is not None
                    [node] = change.holds
                    on[change.consumer] = (change.after.group, node)
        check_state(on)
    assert {consumer: node for consumer, (_, node) in on.items()} == {
        consumer: next(iter(one.allocations)) for consumer, one in held.items()
    }
    for racer in racers:
        for instance, node in racer.acknowledged().items():
            assert instance in on, f"{instance} was acknowledged on {node} and is gone"
            assert on[instance][1] == node
    assert findings_in(place) == []


def check_state(on: dict[str, tuple[str | None, str]]) -> None:
    used = Counter(node for _, node in on.values())
    assert max(used.values(), default=0) <= VCPUS, f"oversold: {used}"
    members: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for group, node in on.values():
        if group is not None:
            members[group][node] += 1
    for group, hosts in members.items():
        rule = RULES[group]
        if rule.policy == "affinity":
            assert len(hosts) == 1, f"{group} is on {hosts}"
        elif rule.policy == "anti-affinity":
            assert max(hosts.values()) <= rule.max_server_per_host, f"{group} is on {hosts}"


def test_two_processes(place: Place) -> None:
    check(place, run_race(place, 24, "short", kill_after=20))


@pytest.mark.nightly
def test_two_processes_at_length(place: Place) -> None:
    racers = run_race(place, 400, str(nightly_seed()), kill_after=500)
    check(place, racers)
    said = sum((racer.answers() for racer in racers), Counter[str]())
    assert min(said[each] for each in ("answered", "refused", "freed", "moved")) > 10, said


@pytest.mark.parametrize("filters", [None, ("ComputeFilter",)], ids=["filters", "no filters"])
def test_two_requests_of_one_group_at_the_same_moment_never_share_a_host(
    place: Place, filters: tuple[str, ...] | None
) -> None:
    """Each has its own ledger on the database, and both choose the same best host."""
    options = None if filters is None else SchedulerOptions(filters=filters)

    async def use() -> None:
        async with opened(place, 2) as ledgers:
            cloud = flat(6)
            await fill(ledgers[0], cloud)
            schedulers = [
                Scheduler(LocalGateway(ledger, HostPools(cloud.table(), options)), Kept(), lambda: NOW)
                for ledger in ledgers
            ]
            group = ServerGroup("apart", "anti-affinity")
            requests = [
                schedulers[n % 2].select_destinations(HostRequest.new(spec(group=group), 1)) for n in range(8)
            ]
            answers = await asyncio.gather(*requests, return_exceptions=True)
            hosts = [each[0].selected.host for each in answers if isinstance(each, tuple)]
            assert sorted(hosts) == [f"host{number}" for number in range(6)]
            assert sum(isinstance(each, NoValidHost) for each in answers) == 2
            fleets = [await ledger.current() for ledger in ledgers]
            assert [fleet.groups.hosts("apart").counts.tolist() for fleet in fleets] == [[1] * 6] * 2

    asyncio.run(use())
    assert findings_in(place) == []

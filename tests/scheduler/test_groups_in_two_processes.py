"""Two schedulers in two processes on one nearly full fleet: nothing is oversold, no group is broken.

They also free what they placed and move it to alternates, and one of them is killed in the middle.
"""

import asyncio
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe, get_context

import pytest
import sqlalchemy as sa

from roost.ledger.feed import decode_changes
from roost.ledger.holdings import held_by_all
from roost.ledger.tables import commits
from roost.model.change import AllocationsChanged
from roost.model.spec import ServerGroup
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.gateways.local import LocalGateway
from roost.storage import Database
from scheduler import group_worker
from scheduler.group_worker import GROUPS, HOSTS, VCPUS
from support.clouds import NOW, Kept, fill, flat, spec
from support.databases import Place
from support.ledgers import findings_in, opened
from support.seeds import nightly_seed

_PROCESSES = get_context("forkserver")
_PROCESSES.set_forkserver_preload(["scheduler.group_worker"])  # Imported once for all workers.
RULES = {group.uuid: group for group in GROUPS}


class Racer:
    """A worker, and what it said. It is killed after ``kill_after`` messages."""

    def __init__(self, place: Place, number: int, name: str, count: int, kill_after: int = 0) -> None:
        self._pipe, theirs = Pipe()
        args = (place.at(number), f"{name}-{number}", count, theirs)
        self._worker = _PROCESSES.Process(target=group_worker.run, args=args, daemon=True)
        self._worker.start()
        theirs.close()
        self._kill_after = kill_after
        self.count = count
        self.said: list[tuple[str, ...]] = []

    def run(self) -> None:
        """Let it work to its end."""
        self._pipe.send("go")
        while True:
            try:
                self.said.append(self._pipe.recv())
            except (EOFError, OSError):
                break
            if len(self.said) == self._kill_after:
                self._worker.kill()
        self._worker.join()

    def wait_until_ready(self) -> None:
        assert self._pipe.recv() == ("ready",)

    def kill(self) -> None:
        self._worker.kill()
        self._worker.join()
        self._pipe.close()

    def answers(self) -> Counter[str]:
        return Counter(word for word, *_ in self.said)

    @property
    def whole(self) -> bool:
        """Whether each of its requests was answered, and it came to its end."""
        said = self.answers()
        return said["answered"] + said["refused"] == self.count and said["done"] == 1

    def acknowledged(self) -> dict[str, str]:
        """What it was told to hold, and has not begun to change since: instance -> node."""
        held: dict[str, str] = {}
        for word, *rest in self.said:
            if word == "placed":
                held[rest[0]] = rest[1]
            elif word in ("freeing", "moving"):
                held.pop(rest[0])
        return held


def race(place: Place, count: int, name: str, kill_after: int) -> list[Racer]:
    """Two racers, ``count`` requests each, and a third in place of the one that is killed."""

    async def fill_fleet() -> None:
        async with opened(place) as [ledger]:
            await fill(ledger, flat(HOSTS, VCPUS))

    asyncio.run(fill_fleet())
    racers = [
        Racer(place, 0, name, count, kill_after),
        Racer(place, 1, name, count),
        Racer(place, 2, name, count // 2),
    ]
    try:
        for racer in racers:
            racer.wait_until_ready()
        killed, through, third = racers
        with ThreadPoolExecutor(2) as threads:
            other = threads.submit(through.run)
            threads.submit(lambda: (killed.run(), third.run())).result()
            other.result()
    finally:
        for racer in racers:
            racer.kill()
    assert through.whole, through.answers()
    assert third.whole, third.answers()
    assert not killed.answers()["done"]
    return racers


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
    check(place, race(place, 24, "short", kill_after=20))


@pytest.mark.nightly
def test_two_processes_at_length(place: Place) -> None:
    racers = race(place, 400, str(nightly_seed()), kill_after=500)
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
                Scheduler(LocalGateway(ledger), cloud.table(), Kept(), options, lambda: NOW)
                for ledger in ledgers
            ]
            group = ServerGroup("apart", "anti-affinity")
            requests = [schedulers[n % 2].select_destinations(spec(group=group), 1) for n in range(8)]
            answers = await asyncio.gather(*requests, return_exceptions=True)
            hosts = [each[0].selected.host for each in answers if isinstance(each, tuple)]
            assert sorted(hosts) == [f"host{number}" for number in range(6)]
            assert sum(isinstance(each, NoValidHost) for each in answers) == 2
            fleets = [await ledger.current() for ledger in ledgers]
            assert [fleet.groups.hosts("apart").counts.tolist() for fleet in fleets] == [[1] * 6] * 2

    asyncio.run(use())
    assert findings_in(place) == []

"""Two schedulers in two processes on one nearly full fleet: nothing is oversold, no group is broken."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from roost.fleet import Fleet
from roost.model.spec import ServerGroup
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.gateways.local import LocalGateway
from scheduler.group_worker import GROUPS, HOSTS, VCPUS
from support.clouds import NOW, Kept, fill, flat, spec
from support.databases import Place
from support.ledgers import findings_in, opened
from support.seeds import nightly_seed

MODULE = "scheduler.group_worker"
TESTS = Path(__file__).parent.parent


async def race(place: Place, count: int) -> list[str]:
    """The answers that two processes gave, ``count`` requests each. The outcome is checked."""
    async with opened(place) as [ledger]:
        await fill(ledger, flat(HOSTS, VCPUS))
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", MODULE, place.at(n), f"{nightly_seed()}-{n}", str(count)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=TESTS,
            )
            for n in range(2)
        ]
        try:
            for worker in workers:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "ready\n"
            for worker in workers:
                assert worker.stdin is not None
                worker.stdin.write("go\n")
                worker.stdin.flush()
            answers = [await asyncio.to_thread(worker.communicate) for worker in workers]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        fleet = await ledger.current()
        check_groups(fleet)
        assert all(each[0] for each in fleet_use(fleet))
        return [answer for out, _ in answers for answer in json.loads(out)]


def check_groups(fleet: Fleet) -> None:
    for group in GROUPS:
        rows, counts = fleet.groups.hosts(group.uuid)
        if group.policy == "affinity":
            assert len(rows) <= 1, f"{group.uuid} is on {len(rows)} hosts"
        else:
            assert (counts <= group.max_server_per_host).all(), f"{group.uuid} has {counts} members on hosts"


def fleet_use(fleet: Fleet) -> list[tuple[bool, int]]:
    """For each host whether its use is within its capacity, and the use."""
    return [
        (used <= VCPUS, used) for row in fleet.rows().tolist() for used in [fleet.usages(row).get("VCPU", 0)]
    ]


def test_two_processes_on_sqlite(tmp_path: Path) -> None:
    place = Place("sqlite", (f"sqlite:///{tmp_path / 'ledger.db'}",))
    answers = asyncio.run(race(place, 30))
    assert len(answers) == 60
    assert set(answers) == {"placed", "NoValidHost"}
    assert findings_in(place) == []


@pytest.mark.nightly
def test_two_processes_at_length(place: Place) -> None:
    answers = asyncio.run(race(place, 400))
    assert len(answers) == 600
    assert set(answers) <= {"placed", "NoValidHost"}
    assert findings_in(place) == []


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

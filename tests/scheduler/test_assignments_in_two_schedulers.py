"""Two schedulers on one nearly full fleet of NUMA and PCI nodes: no CPU, page or device is assigned twice.

They choose at the same time, free, move and hand over, and hear of the nodes late, twice or never.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa

from roost.ledger.feed import decode_changes
from roost.ledger.holdings import held_by_all
from roost.ledger.tables import commits
from roost.model.assignment import Assignment
from roost.model.change import AllocationsChanged
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.storage import Database
from scheduler import assignment_worker
from scheduler.assignment_worker import AT_ONCE, NODES, Worker
from support.clouds import fill, over_http
from support.databases import Place
from support.hardware_clouds import check_assignments, hardware_cloud
from support.ledgers import findings_in, opened
from support.racing import Racer, race
from support.seeds import nightly_seed


def check(place: Place) -> int:
    """Each commit left a state in which nothing is assigned twice. Returns the most that there were."""
    database = Database(place.url)
    try:
        held = database.read_now(held_by_all)
        texts = database.read_now(
            lambda connection: connection.execute(sa.select(commits.c.changes).order_by(commits.c.seq)).all()
        )
    finally:
        asyncio.run(database.close())
    assigned: dict[str, Assignment] = {}
    most = 0
    for (text,) in texts:
        changed = False
        for change in decode_changes(text):
            if isinstance(change, AllocationsChanged):
                changed = True
                assigned.pop(change.consumer, None)
                if change.after is not None and change.after.assignment is not None:
                    assigned[change.consumer] = change.after.assignment
        if changed:
            check_assignments(assigned.values())
        most = max(most, len(assigned))
    assert assigned == {uuid: each.consumer.assignment for uuid, each in held.items()}
    assert findings_in(place) == []
    return most


async def compete(place: Place, over: str, name: str, count: int) -> Counter[str]:
    """Two schedulers, each with its own ledger or connection; returns how often each thing happened."""
    said: list[tuple[str, ...]] = []
    async with AsyncExitStack() as stack:
        ledgers = await stack.enter_async_context(opened(place, 2))
        await fill(ledgers[0], hardware_cloud(NODES))
        workers = []
        for number, ledger in enumerate(ledgers):
            gateway: Gateway = LocalGateway(ledger, assignment_worker.pools())
            if over == "http":
                gateway = HttpGateway(
                    await stack.enter_async_context(over_http(ledger)), assignment_worker.pools()
                )
            say = lambda *words: said.append(words)  # noqa: E731
            workers.append(Worker(ledger, gateway, f"{name}-{number}", say))
        await asyncio.gather(
            *(worker.work(range(first, count, AT_ONCE)) for worker in workers for first in range(AT_ONCE))
        )
    return Counter(word for word, *_ in said)


def on_sqlite(folder: Path) -> Place:
    return Place("sqlite", (f"sqlite:///{folder / 'roost.db'}",))


@pytest.mark.parametrize("over", ["ledger", "http"])
def test_two_schedulers_assign_nothing_twice(tmp_path: Path, over: str) -> None:
    said = asyncio.run(compete(on_sqlite(tmp_path), over, "short", 24))
    assert check(on_sqlite(tmp_path)) >= 8
    assert min(said[each] for each in ("answered", "refused", "freed")) > 0, said


@pytest.mark.nightly
@pytest.mark.parametrize("over", ["ledger", "http"])
def test_two_schedulers_at_length(place: Place, over: str) -> None:
    said = asyncio.run(compete(place, over, str(nightly_seed()), 300))
    check(place)
    assert min(said[each] for each in ("answered", "refused", "freed", "moved", "handed")) > 5, said


def run_in_processes(place: Place, count: int, name: str, kill_after: int) -> list[Racer]:
    async def fill_fleet() -> None:
        async with opened(place) as [ledger]:
            await fill(ledger, hardware_cloud(NODES))

    asyncio.run(fill_fleet())
    return race(assignment_worker.run, place, count, name, kill_after)


def check_acknowledged(place: Place, racers: list[Racer]) -> None:
    database = Database(place.url)
    held = database.read_now(held_by_all)
    asyncio.run(database.close())
    for racer in racers:
        for instance, node in racer.acknowledged().items():
            assert instance in held, f"{instance} was acknowledged on {node} and is gone"
            assignment = held[instance].consumer.assignment
            assert assignment is not None
            assert assignment.node == node


def test_two_processes_and_one_that_is_killed(tmp_path: Path) -> None:
    place = on_sqlite(tmp_path)
    racers = run_in_processes(place, 12, "short", kill_after=10)
    assert check(place) > 0
    check_acknowledged(place, racers)


@pytest.mark.nightly
def test_two_processes_at_length(place: Place) -> None:
    racers = run_in_processes(place, 300, str(nightly_seed()), kill_after=300)
    check(place)
    check_acknowledged(place, racers)
    said = sum((racer.answers() for racer in racers), Counter[str]())
    assert min(said[each] for each in ("answered", "refused", "freed", "moved", "handed")) > 5, said

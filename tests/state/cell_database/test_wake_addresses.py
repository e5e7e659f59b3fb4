"""Processes of a cell are told of work that others have written."""

import asyncio
import uuid
from contextlib import asynccontextmanager

import pytest

from roost.process.remote_wakes import LOOPBACK, WakeAddress, open_receiver
from roost.process.wakes import Wakes
from roost.state.cell_database import Cell
from roost.state.cell_database.conductor_work import work_topic
from roost.state.cell_database.host_work import orders_topic
from roost.state.cell_database.wake_addresses import WorkAnnouncer, read_wake_addresses, store_wake_address
from roost.state.leases import AcquireLease, leases_of_kind, release_lease, vacate_leases
from roost.storage import DatabaseUnavailable
from support.cells import instance, opened_cell
from support.waiting import patience

KIND = "cell-conductor"


def address(number: int) -> WakeAddress:
    return WakeAddress("192.0.2.1", number, str(uuid.UUID(int=number)))


async def hold(cell: Cell, lease: str, nonce: str) -> None:
    await cell.write(
        AcquireLease(name=lease, kind=KIND, holder=nonce, host="machine", service_version=1, now=0.0)
    )


def test_an_address_counts_as_long_as_its_lease_is_held(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            for number in (1, 2, 3):
                await hold(cell, f"{KIND}/{number}", f"nonce {number}")
                await cell.write(store_wake_address(f"{KIND}/{number}", address(number)))
            assert set(await cell.read(read_wake_addresses())) == {address(1), address(2), address(3)}
            [first] = [lease for lease in await cell.read(leases_of_kind(KIND)) if lease.name.endswith("1")]
            await cell.write(vacate_leases([first]))
            await cell.write(release_lease(f"{KIND}/2", "nonce 2"))
            assert await cell.read(read_wake_addresses()) == (address(3),)
            await cell.write(store_wake_address(f"{KIND}/3", address(4)))
            assert await cell.read(read_wake_addresses()) == (address(4),)
            # The lease that was given back has no row any more, the one that was taken has.
            await hold(cell, f"{KIND}/1", "nonce 5")
            await hold(cell, f"{KIND}/2", "nonce 6")
            assert set(await cell.read(read_wake_addresses())) == {address(1), address(4)}

    asyncio.run(run())


@asynccontextmanager
async def told(cell: Cell, lease: str):
    """Another process of a cell, which is told of its work: its topics, and its address."""
    wakes = Wakes()
    topics = (work_topic(cell.name), orders_topic(cell.name))
    transport, at = await open_receiver(wakes, topics, str(uuid.uuid4()), LOOPBACK)
    await hold(cell, lease, f"nonce of {lease}")
    await cell.write(store_wake_address(lease, at))
    try:
        yield wakes, at
    finally:
        transport.close()


def test_all_other_processes_are_told_of_new_work(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell, told(cell, "a") as (a, _), told(cell, "b") as (b, _):
            orders = [each.listen(orders_topic(cell.name), from_now=True) for each in (a, b)]
            works = [each.listen(work_topic(cell.name), from_now=True) for each in (a, b)]
            await cell.add([instance("one")])
            assert [await each.wait(patience(10)) for each in orders] == [True, True]
            assert [await each.wait(0.0) for each in works] == [False, False], "no work of conductors"
            await cell.add([instance("two")])
            assert [await each.wait(patience(10)) for each in orders] == [True, True]
            await cell.add([instance("three", None)])
            await cell.delete(["three"])
            assert [await each.wait(patience(10)) for each in works] == [True, True]

    asyncio.run(run())


def test_a_process_does_not_tell_itself(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell, told(cell, "a") as (own, at), told(cell, "b") as (other, _):
            cell.announcer.own = at
            topic = orders_topic(cell.name)
            heard = other.listen(topic, from_now=True)
            for number in range(3):
                await cell.add([instance(str(number))])
                assert await heard.wait(patience(10))
            assert own.count(topic) == 0

    asyncio.run(run())


class _Reads:
    """Reads of addresses, which a test answers."""

    def __init__(self) -> None:
        self.answers: list[asyncio.Future[tuple[WakeAddress, ...]]] = []

    async def __call__(self) -> tuple[WakeAddress, ...]:
        answer: asyncio.Future[tuple[WakeAddress, ...]] = asyncio.get_running_loop().create_future()
        self.answers.append(answer)
        return await answer


@pytest.fixture
def sent(monkeypatch) -> list[tuple[int, str]]:
    """What announcers send: port and topic."""
    made: list[tuple[int, str]] = []
    monkeypatch.setattr(
        "roost.state.cell_database.wake_addresses.send_wake",
        lambda address, topic: made.append((address.port, topic)),
    )
    return made


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_addresses_are_read_beside_announcements_and_seldom(sent) -> None:
    async def run() -> None:
        reads, now = _Reads(), [0.0]
        announcer = WorkAnnouncer(reads, lambda: now[0])
        announcer.announce("orders")
        await _turns()
        announcer.announce("work")
        assert (len(reads.answers), sent) == (1, []), "no address is known yet"
        reads.answers[0].set_result((address(1),))
        await _turns()
        assert sorted(sent) == [(1, "orders"), (1, "work")], "each once, to whom it is new"
        announcer.announce("orders")
        await _turns()
        assert sent[2:] == [(1, "orders")]
        assert len(reads.answers) == 1, "they are young"
        now[0] = 60.0
        announcer.announce("orders")
        await _turns()
        assert sent[3:] == [(1, "orders")], "nobody waits for the read"
        reads.answers[1].set_result((address(1), address(2)))
        await _turns()
        assert sent[4:] == [(2, "orders")]

    asyncio.run(run())


def test_addresses_that_cannot_be_read_stay_as_they_are(sent) -> None:
    async def run() -> None:
        reads, now = _Reads(), [0.0]
        announcer = WorkAnnouncer(reads, lambda: now[0])
        announcer.announce("orders")
        await _turns()
        reads.answers[0].set_result((address(1),))
        await _turns()
        now[0] = 60.0
        announcer.announce("orders")
        await _turns()
        reads.answers[1].set_exception(DatabaseUnavailable("away"))
        await _turns()
        now[0] = 120.0
        announcer.announce("orders")
        assert sent == [(1, "orders")] * 3

    asyncio.run(run())

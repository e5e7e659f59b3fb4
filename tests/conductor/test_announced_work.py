"""Work that other processes write is found at once where it is announced, and by looks where it is not."""

import asyncio

import pytest
from structlog.testing import capture_logs

from roost.agent.protocol.questions import Poll
from roost.agent.protocol.types import SessionKey
from roost.conductor.agent_endpoint.host_orders import HostOrders, NewKeys
from roost.conductor.announced_work import WakeOptions
from roost.conductor.cell_conductor import CellConductor
from roost.model.instance import ACTIVE
from roost.process.remote_wakes import LOOPBACK
from roost.state.cell_database.wake_addresses import read_wake_addresses
from support.agents import hosts, until
from support.cells import instance, opened_cell
from support.stepped_contexts import SteppedContext, Wait

NEVER = 3600.0
"""Seconds between two looks, so that nothing is found without an announcement."""


def test_an_instance_that_another_process_puts_into_a_cell_is_built_at_once(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path, poll=NEVER, build=5 * NEVER, look=NEVER) as there:
            conductor = CellConductor(
                there.cell, there.placement, None, None, poll_seconds=NEVER, wakes=WakeOptions()
            )
            working = asyncio.create_task(conductor.run())
            try:
                await until(lambda: there.cell.announcer.own)
                await until(lambda: there.cell.read(read_wake_addresses()))
                async with there.running(), opened_cell(tmp_path) as elsewhere:
                    for number in range(3):
                        await elsewhere.add([instance(str(number))])
                        await there.reaches(ACTIVE, str(number))
            finally:
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)
            assert there.cell.announcer.own is None

    asyncio.run(run())


def test_a_port_that_is_taken_is_told_and_tried_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("roost.conductor.announced_work.BIND_SECONDS", 0.01)

    async def run() -> None:
        async with hosts(tmp_path) as there:
            told = "announcements of work cannot be received"
            loop = asyncio.get_running_loop()
            taken, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, (LOOPBACK, 0))
            port = taken.get_extra_info("sockname")[1]
            options = WakeOptions(host=LOOPBACK, port=port)
            conductor = CellConductor(there.cell, there.placement, None, None, wakes=options)
            working = asyncio.create_task(conductor.run())
            try:
                with capture_logs() as logs:
                    await until(lambda: told in [line["event"] for line in logs])
                    taken.close()
                    await until(lambda: there.cell.announcer.own)
                assert there.cell.announcer.own.port == port
            finally:
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)

    asyncio.run(run())


@pytest.mark.parametrize("text", ["rack1", "10.0.0.1:9", "", "10.0.0.300"])
def test_an_address_that_is_none_is_refused(text) -> None:
    with pytest.raises(ValueError, match=r"wake_host.*no IP address"):
        WakeOptions.declared["host"].parse(text)


def poll() -> Poll:
    session = SessionKey("a", "nonce", 1)
    return Poll(session=session, counter=1, counted=0, wait_seconds=20.0)


class Looking:
    """The looks of an endpoint, whose waits a test answers."""

    def __init__(self) -> None:
        self.orders = HostOrders(SteppedContext(), "cell1", (1.0, 0.25), 600.0)
        self.polled = self.orders.wait(poll(), frozenset(), 100.0)
        self.coroutine = self.orders.look_for_work()
        self.wait: Wait = self.coroutine.send(None)

    def waits(self) -> float:
        """The seconds until the next look by time."""
        assert self.wait.name == "wait"
        return self.wait.arguments[0]

    def look(self, *, woken: bool, finds: bool) -> None:
        """Let the wait end, and answer the reads of the look."""
        self.polled.close()
        self.polled = self.orders.wait(poll(), frozenset(), 100.0)
        self.polled.send(None)
        answers = [woken, NewKeys(("one",) if finds else (), ())]
        if finds:
            answers.append([("a", instance("one", "a"))])
        for answer in answers:
            self.wait = self.coroutine.send(answer)
        assert self.wait.name == "sleep"
        self.wait = self.coroutine.send(None)


def test_who_is_not_told_of_work_looks_more_often_until_told() -> None:
    looking = Looking()
    assert looking.waits() == 1.0
    looking.look(woken=True, finds=True)
    assert looking.waits() == 1.0
    looking.look(woken=False, finds=False)
    assert looking.waits() == 1.0
    looking.look(woken=False, finds=True)
    assert looking.waits() == 0.25, "work came that nobody announced"
    looking.look(woken=False, finds=False)
    looking.look(woken=True, finds=False)
    assert looking.waits() == 0.25
    looking.look(woken=True, finds=True)
    assert looking.waits() == 1.0

"""Datagrams wake topics of other processes, and nothing else."""

import asyncio
import socket

import pytest

from roost.process.remote_wakes import (
    LOOPBACK,
    WakeAddress,
    WakeReceiver,
    open_receiver,
    own_address_towards,
    send_wake,
)
from roost.process.wakes import Wakes
from support.waiting import patience


def test_a_datagram_wakes_the_topic_that_it_names() -> None:
    async def run() -> None:
        wakes = Wakes()
        transport, address = await open_receiver(wakes, ["orders", "work"], "secret", LOOPBACK)
        orders, work = (wakes.listen(topic, from_now=True) for topic in ("orders", "work"))
        try:
            send_wake(address, "orders")
            assert await orders.wait(patience(10))
            assert not await work.wait(0.0)
        finally:
            transport.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "data",
    [b"", b" ", b"orders", b"secret", b"secret other", b"wrong orders", b"secret  orders", b"\xff" * 70_000],
)
def test_other_datagrams_have_no_effect(data) -> None:
    wakes = Wakes()
    WakeReceiver(wakes, ["orders"], "secret").datagram_received(data, ("127.0.0.1", 1))
    assert wakes.count("orders") == 0


def test_a_datagram_that_cannot_be_sent_ends_nothing() -> None:
    send_wake(WakeAddress("no address", 1, "secret"), "orders")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind((LOOPBACK, 0))
        port = nobody.getsockname()[1]
    send_wake(WakeAddress(LOOPBACK, port, "secret"), "orders")


@pytest.mark.parametrize("host", [None, "", "127.0.0.1", "localhost", "no.such.host.invalid"])
def test_this_machine_is_reached_at_its_own_address(host) -> None:
    assert asyncio.run(own_address_towards(host)) in (LOOPBACK, "::1")

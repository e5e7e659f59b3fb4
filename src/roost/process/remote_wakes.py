"""Wakes of topics in other processes, by datagrams.

A datagram says that a topic may have work, and nothing else. It may be lost, come twice or come from nobody
who has work: the process that gets it looks into its database, as it does at intervals anyway.
"""

import asyncio
import hmac
import socket
from collections.abc import Collection
from typing import Final

import msgspec

from roost.process.logs.outages import OutageLines
from roost.process.wakes import Wakes

LONGEST: Final = 1024
"""The most bytes of a datagram that is read."""

LOOPBACK: Final = "127.0.0.1"
DISCARD: Final = 9
"""The port of the discard protocol: any port would do to ask for a route."""


class WakeAddress(msgspec.Struct, frozen=True):
    """The address at which a process gets datagrams.

    ``host``: an IP address, ``port``: a UDP port. ``key``: the secret that a datagram for it carries, in
    ASCII without spaces.
    """

    host: str
    port: int
    key: str


class WakeReceiver(asyncio.DatagramProtocol):
    """Wakes topics of this process when datagrams name them.

    A datagram without the key, or for a topic that is not one of ``topics``, has no effect.
    """

    def __init__(self, wakes: Wakes, topics: Collection[str], key: str) -> None:
        self._wakes = wakes
        self._topics = {topic.encode(): topic for topic in topics}
        self._key = key.encode()

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Wake the topic that a datagram names."""
        key, _, name = data[:LONGEST].partition(b" ")
        topic = self._topics.get(name)
        if topic is not None and hmac.compare_digest(key, self._key):
            self._wakes.wake(topic)


async def open_receiver(
    wakes: Wakes, topics: Collection[str], key: str, host: str, port: int = 0
) -> tuple[asyncio.DatagramTransport, WakeAddress]:
    """Receive datagrams until the transport is closed; returns it with the address.

    ``host``: an IP address of this machine; ``port``: 0 for a free one. Raises `OSError`.
    """
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: WakeReceiver(wakes, topics, key), local_addr=(host, port)
    )
    bound = transport.get_extra_info("sockname")
    return transport, WakeAddress(host, bound[1], key)


def send_wake(address: WakeAddress, topic: str) -> None:
    """Send a datagram that wakes a topic. Never waits. One that cannot be sent is dropped."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    shown = f"{address.host}:{address.port}"
    try:
        with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            sender.sendto(f"{address.key} {topic}".encode(), (address.host, address.port))
    except OSError as error:
        _unsent.failed(shown, address=shown, error=str(error))
    else:
        _unsent.succeeded(shown, address=shown)


async def own_address_towards(host: str | None) -> str:
    """Return the IP address of this machine from which it reaches another one.

    ``host``: the other one's name or IP address. None, or one that is not known: this machine. So processes
    on two machines that use one database server most likely reach each other at these addresses.
    """
    if not host:
        return LOOPBACK
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, DISCARD, type=socket.SOCK_DGRAM)
        family, _, _, _, towards = found[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Nothing is sent: the kernel chooses the address by its routes.
            probe.connect(towards)
            address: str = probe.getsockname()[0]
    except OSError:
        return LOOPBACK
    return address


_unsent = OutageLines(
    __name__, "work cannot be announced to a process", "work can be announced again", level="warning"
)

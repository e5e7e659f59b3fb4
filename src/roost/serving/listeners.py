"""Listening sockets, which the parent process makes and every worker inherits.

Each worker slot has a socket of its own on the same address (SO_REUSEPORT), among which the kernel
distributes connections; workers that shared one socket would get very unequal numbers of connections. The
parent keeps the sockets open: connections that wait for a worker that is killed are served by the one that
follows it.
"""

import socket
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

from roost.model.errors import OperatorError

BACKLOG = 1024
"""Connections that may wait for a worker. The kernel drops further ones, and clients try again."""


class Address(NamedTuple):
    """The host and port on which a service listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def listen(address: Address, slots: int) -> Sequence[socket.socket]:
    """Return one listening socket for each slot.

    Raises `OperatorError` if the address is in use or not of this machine.
    """
    found: list[socket.socket] = []
    try:
        family, kind, protocol, _, resolved = _resolve(address)
        with closing(socket.socket(family, kind, protocol)) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # With SO_REUSEPORT the service would share the port with another one of the same user.
            trial.bind(resolved)
        for _ in range(slots):
            each = socket.socket(family, kind, protocol)
            found.append(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            each.setblocking(False)
            each.bind(resolved)
            each.listen(BACKLOG)
    except OSError as error:
        for each in found:
            each.close()
        raise OperatorError(
            f"cannot listen on {address.host} port {address.port}: {error.strerror}"
        ) from error
    return found


def check_address(host: str, port: int) -> None:
    """Check that an address is free and of this machine. Raises `OperatorError`."""
    for each in listen(Address(host, port), 1):
        each.close()


def _resolve(
    address: Address,
) -> tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]:
    return socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]

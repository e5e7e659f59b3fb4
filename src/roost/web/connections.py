"""The settings of the HTTP server that keep slow and silent clients from holding it."""

import asyncio
import contextlib
import os
import resource
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from granian.constants import HTTPModes
from granian.http import HTTP1Settings

from roost.web.dispatch import Message
from roost.web.limits import LARGEST_HEAD, Limits

SPARE_FILES: Final = 256
"""Open files of a process beside its connections: databases, libraries, logs."""

GRACE_SECONDS: Final = 1.0
"""Seconds that a client has to read an answer before its connection is cut."""

Address = tuple[str, int]


def server_settings(limits: Limits) -> dict[str, Any]:
    """Return the arguments of a Granian server for these limits, and raise the limit of open files to fit.

    HTTP/2 without TLS is off: a server that has to detect the version waits for ever for a silent client.
    ``backpressure`` is a number of connections, idle ones included.
    """
    return {
        "http": HTTPModes.http1,
        "http1_settings": HTTP1Settings(
            header_read_timeout=limits.idle_seconds * 1000, max_buffer_size=LARGEST_HEAD
        ),
        "backpressure": _allow_files(limits.connections),
    }


def _allow_files(connections: int) -> int:
    """Raise the limit of open files as far as these connections need and the system allows.

    Returns the number of connections that the limit allows.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else max(1, min(connections, soft - SPARE_FILES))


def cut_clients_that_do_not_read(listening: socket.socket, limits: Limits) -> None:
    """Make the kernel close connections whose client reads nothing of an answer for ``send_seconds``.

    Accepted sockets inherit the option of the listening one. UNIX sockets have no such option.
    """
    if listening.family != socket.AF_UNIX:
        milliseconds = int(limits.send_seconds * 1000)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)


class Cutter:
    """Closes connections that the server keeps open although their last request is over.

    The server waits without limit for the rest of a body, and for a client that reads nothing of an answer. A
    connection can be found only by the address of its client, among all sockets of the process. So one
    search, in a thread, serves all connections that are to be closed.
    """

    def __init__(self, grace_seconds: float = GRACE_SECONDS) -> None:
        self._grace_seconds = grace_seconds
        self._ends: set[Address] = set()

    def cut_soon(self, scope: Message) -> None:
        """Close the connection of a request after the grace time that its client has to read the answer."""
        client = scope.get("client")
        # Granian gives the port as text. A client on a UNIX socket has none.
        if not client or not str(client[1]).isdigit():
            return
        if not self._ends:
            asyncio.get_running_loop().call_later(self._grace_seconds, self._cut)
        self._ends.add((client[0], int(client[1])))

    def _cut(self) -> None:
        ends, self._ends = self._ends, set()
        asyncio.get_running_loop().run_in_executor(None, _shut_down, ends)


def _shut_down(ends: set[Address]) -> None:
    """Shut down the connections with these client addresses."""
    for each in _tcp_sockets():
        with contextlib.suppress(OSError):
            if each.getpeername()[:2] in ends:
                each.shutdown(socket.SHUT_RDWR)


def _tcp_sockets() -> Iterator[socket.socket]:
    """Yield duplicates of the TCP sockets of this process. Each is closed when the next one is requested.

    A duplicate stays the same connection even if the server closes its own descriptor meanwhile.
    """
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if not stat.S_ISSOCK(os.fstat(int(entry.name)).st_mode):
                continue
            found = socket.socket(fileno=os.dup(int(entry.name)))
        except OSError:
            # Closed since, such as the descriptor of the folder itself.
            continue
        with found:
            if found.family in (socket.AF_INET, socket.AF_INET6):
                yield found

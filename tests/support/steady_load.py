"""Clients that send one request after the other on kept connections, and note each that got no answer."""

import http.client
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from roost.server.workers.supervision import SupervisionRules
from support.waiting import Deadline

SECONDS = 60.0
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}


LINGER_SECONDS = SupervisionRules(workers=1).linger_seconds


class Unanswered(NamedTuple):
    """A request without an answer. ``port``: of its client, 0 if it could not connect.

    ``idle``: seconds since the last answer on its connection, or since it was made.
    """

    port: int
    error: str
    idle: float


class SteadyLoad(AbstractContextManager["SteadyLoad"]):
    """``clients`` threads, each with one connection, which send GET requests until the context ends."""

    def __init__(self, connect: Callable[[], http.client.HTTPConnection], clients: int = 8) -> None:
        self.statuses: Counter[int] = Counter()
        self.unanswered: list[Unanswered] = []
        self._connect = connect
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def __enter__(self) -> "SteadyLoad":
        for each in self._threads:
            each.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()

    @property
    def lost(self) -> list[Unanswered]:
        """The requests without an answer that are the service's fault.

        A worker that is replaced tells its clients for `LINGER_SECONDS` to reconnect. A client that sends
        nothing for so long, as on a machine that is busy, may find its connection closed.
        """
        return [each for each in self.unanswered if each.idle < LINGER_SECONDS]

    def wait_for_answers(self, more: int) -> None:
        """Wait until that many further requests are answered."""
        wanted = self.statuses.total() + more
        until = Deadline(SECONDS)
        while self.statuses.total() < wanted:
            assert not until.passed, f"too few answers: {self.statuses} {self.unanswered}"
            time.sleep(0.02)

    def _ask(self) -> None:
        connection = self._connect()
        last = time.monotonic()
        while not self._ended.is_set():
            port, idle = 0, 0.0
            try:
                if connection.sock is None:
                    connection.connect()
                    last = time.monotonic()
                name = connection.sock.getsockname()
                port = name[1] if isinstance(name, tuple) else 0
                connection.request("GET", "/resource_providers", headers=HEADERS)
                idle = time.monotonic() - last
                answer = connection.getresponse()
                answer.read()
                last = time.monotonic()
                self.statuses[answer.status] += 1
            except (OSError, http.client.HTTPException) as error:
                idle = idle or time.monotonic() - last
                self.unanswered.append(Unanswered(port, repr(error), idle if port else 0.0))
                connection.close()
            time.sleep(0.01)
        connection.close()


def freeze(pid: int) -> None:
    """Stop a process with SIGSTOP and wait until all its threads stand still."""
    os.kill(pid, signal.SIGSTOP)
    until = Deadline(SECONDS)
    while any(state_of(each) not in "Tt" for each in Path(f"/proc/{pid}/task").iterdir()):
        assert not until.passed, "the process does not stop"
        time.sleep(0.002)


def state_of(task: Path) -> str:
    """The state of a thread as proc(5) has it: one letter."""
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


def client_ports(pid: int) -> set[int]:
    """The ports of the clients whose connections a process has accepted."""
    inodes = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(each.readlink())
        except FileNotFoundError:
            continue  # it was closed meanwhile
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return {int(row[2].rpartition(":")[2], 16) for row in rows if row[9] in inodes}

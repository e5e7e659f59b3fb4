"""The operator: evacuates hosts that have lost their power, and drains others with moves, over HTTP."""

import random
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import httpx

from chaos.books import Books
from chaos.guests import power_off
from chaos.load import LOST
from support.waiting import Deadline, patience

DRAIN_SECONDS = (3.0, 12.0)
"""How long a host is drained, at least and at most. What it has by then stays."""
PAUSE_SECONDS = 2.0
"""Between two looks at hosts that are dead."""
RETRY_SECONDS = 0.2
"""Between two tries to enable a host."""
EVIDENCE = "its power was taken"


class Operator:
    """Does what its seed says to hosts, one drain at a time. Threads may tell it of deaths.

    ``hosts``: those that it drains. ``folder``: the files of hosts. ``urls``: of conductors. ``evacuations``:
    the moves that were begun, ``drains`` the number of those that have ended.
    """

    def __init__(
        self,
        books: Books,
        seed: str,
        urls: Sequence[str],
        hosts: Collection[str],
        folder: Path,
        headers: dict[str, str],
    ) -> None:
        self.evacuations: set[str] = set()
        self.drains = 0
        self._books = books
        self._draw = random.Random(f"operator {seed}")
        self._urls = urls
        self._hosts = sorted(hosts)
        self._folder = folder
        self._headers = headers
        self._dead: tuple[str, ...] = ()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def hear_of_dead(self, hosts: Sequence[str]) -> None:
        """Take the power of hosts whose agents have ended, and evacuate them from now on; none: of none."""
        for host in hosts:
            power_off(self._folder, host)
        with self._books.lock:
            self._books.died.update(hosts)
        self._dead = tuple(hosts)

    def end(self, seconds: float) -> None:
        """Enable what is drained, within some seconds. Raises what has gone wrong."""
        self._stop.set()
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the operator has not enabled a host in time"
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with httpx.Client(headers=self._headers, timeout=patience(20)) as http:
                while not self._stop.wait(self._draw.uniform(0.0, PAUSE_SECONDS)):
                    self._evacuate(http)
                    self._drain(http)
        except BaseException as error:
            self._error = error

    def _evacuate(self, http: httpx.Client) -> None:
        for host in self._dead:
            found = self._asked(http, "POST", f"hosts/{host}/evacuate", {"evidence": EVIDENCE})
            if found is not None:
                self.evacuations.update(each["uuid"] for each in found["moves"])

    def _drain(self, http: httpx.Client) -> None:
        host = self._draw.choice(self._hosts)
        self._asked(http, "PUT", f"hosts/{host}", {"enabled": False, "move": True, "reason": "chaos"})
        until = Deadline(self._draw.uniform(*DRAIN_SECONDS))
        while not until.passed and not self._stop.wait(PAUSE_SECONDS):
            self._evacuate(http)
        while self._asked(http, "PUT", f"hosts/{host}", {"enabled": True}) is None:
            time.sleep(RETRY_SECONDS)
        self.drains += 1

    def _asked(self, http: httpx.Client, method: str, path: str, body: dict[str, Any]) -> Any:
        """The answer; None if it is none, or one that leaves the outcome open."""
        url = f"{self._draw.choice(self._urls)}/v1/{path}"
        try:
            answer = http.request(method, url, json=body)
        except httpx.TransportError:
            return None
        if answer.is_success:
            return answer.json()
        # A host whose agent has not been heard yet is not known.
        if answer.status_code not in (*LOST, 404):
            with self._books.lock:
                self._books.wrong.append(f"{method} {url}: {answer.status_code} {answer.text[:300]}")
        return None

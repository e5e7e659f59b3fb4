"""The operator: evacuates hosts that have lost their power, drains others and maintains some, over HTTP."""

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
MAINTENANCE_SECONDS = (10.0, 40.0)
"""How long a maintenance takes before it is cancelled, at least and at most."""
BEGIN_SECONDS = 120.0
"""The time in which a maintenance is begun, in whatever weather."""
MAINTAINED_HOSTS = 5
"""Hosts of a maintenance. Each wave has up to two."""
ENDED = ("done", "cancelled")
PAUSE_SECONDS = 2.0
"""Between two looks at hosts that are dead."""
RETRY_SECONDS = 0.2
"""Between two tries of what has to be done."""
EVIDENCE = "its power was taken"


class Operator:
    """Does what its seed says to hosts, one drain or maintenance at a time. Threads may tell it of deaths.

    ``hosts``: those that it drains, and maintains if it ``maintains`` any. ``folder``: the files of hosts.
    ``urls``: of conductors. ``evacuations``: the moves that were begun. ``drains``: the number of those that
    have ended, ``maintenances`` too, and ``maintained`` that of the hosts which were emptied in them.
    """

    def __init__(
        self,
        books: Books,
        seed: str,
        urls: Sequence[str],
        hosts: Collection[str],
        folder: Path,
        headers: dict[str, str],
        *,
        maintains: bool,
    ) -> None:
        self.maintains = maintains
        self.evacuations: set[str] = set()
        self.drains = self.maintenances = self.maintained = 0
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
                    if self.maintains:
                        self._maintain(http)
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

    def _maintain(self, http: httpx.Client) -> None:
        """Have hosts emptied in waves, say of each that it is done, and cancel what takes too long."""
        wanted = {
            "hosts": self._draw.sample(self._hosts, MAINTAINED_HOSTS),
            "most_hosts": 2,
            "keep_going": True,
        }
        key = f"maintenance-{self._draw.random()}"
        begins = Deadline(BEGIN_SECONDS)
        while (begun := self._asked(http, "POST", "maintenances", wanted, key=key)) is None:
            assert not begins.passed, f"a maintenance of {wanted['hosts']} is not begun"
            time.sleep(RETRY_SECONDS)
        path = f"maintenances/{begun['uuid']}"
        until = Deadline(self._draw.uniform(*MAINTENANCE_SECONDS))
        paused = False
        while (shown := self._asked(http, "GET", path)) is None or shown["state"] not in ENDED:
            if until.passed or self._stop.is_set():
                self._say(http, f"{path}/cancel")
            elif self._draw.random() < 0.2:
                self._say(http, f"{path}/{'resume' if paused else 'pause'}")
                paused = not paused
            page = self._asked(http, "GET", f"{path}/hosts?state=in-work")
            for each in () if page is None else page["hosts"]:
                self._say(http, f"{path}/hosts/{each['host']}/done")
            self._evacuate(http)
            time.sleep(RETRY_SECONDS)
        self.maintenances += 1
        self.maintained += shown["hosts"].get("returned", 0)

    def _say(self, http: httpx.Client, path: str) -> None:
        """Say a word about a maintenance that it may not wait for any more."""
        self._asked(http, "POST", path, also=409)

    def _asked(
        self,
        http: httpx.Client,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        key: str | None = None,
        also: int = 404,
    ) -> Any:
        """The answer; None if it is none, or one that leaves the outcome open.

        ``key``: of a request that is sent again. ``also``: a status that leaves the outcome open too.
        """
        url = f"{self._draw.choice(self._urls)}/v1/{path}"
        headers = {} if key is None else {"idempotency-key": key}
        try:
            answer = http.request(method, url, json=body, headers=headers)
        except httpx.TransportError:
            return None
        if answer.is_success:
            return answer.json()
        # A host whose agent has not been heard yet is not known.
        if answer.status_code not in (*LOST, 404, also):
            with self._books.lock:
                self._books.wrong.append(f"{method} {url}: {answer.status_code} {answer.text[:300]}")
        return None

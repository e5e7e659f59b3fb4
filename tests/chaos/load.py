"""Users: they ask for instances, look at them, stop, shelve, move and delete them at any time, over HTTP."""

import random
import threading
import time
from collections.abc import Sequence
from typing import Any

import httpx

from chaos.books import Books, Wanted
from support.waiting import patience

PAUSE_SECONDS = 0.2
"""Between a failure and the next act of a user."""
POWER_WORDS = ("stop", "start", "start", "shelve", "unshelve", "unshelve")
LOST = (502, 503, 504)
"""Answers that leave open whether the request was carried out."""


class User:
    """Does what its seed says: asks for instances until ``most`` are its own, deletes, looks at some, …

    ``urls``: of conductors, one of which it asks at a time. ``moves``: whether it moves instances. ``power``:
    whether it stops, starts, shelves and unshelves them. ``rest``: seconds between two acts: users without a
    rest take all the time of the processors.
    """

    def __init__(
        self,
        books: Books,
        name: str,
        urls: Sequence[str],
        most: int = 20,
        *,
        moves: bool = True,
        power: bool = False,
        rest: float = 0.0,
    ) -> None:
        self._books = books
        self._name = name
        self._rest = rest
        self._urls = urls
        self._most = most
        self._weights = (5, 4, 2, *((3, 3) if moves else (0, 0)), 2 if power else 0)
        self._draw = random.Random(name)
        self._mine: list[str] = []
        self._moves: list[str] = []
        self._numbers = 0

    def run(self, http: httpx.Client, stop: threading.Event) -> None:
        """Act until told to stop."""
        while not stop.wait(self._rest):
            acts = (self._ask, self._delete, self._look, self._move, self._settle, self._power)
            act = self._draw.choices(acts, self._weights)[0]
            try:
                act(http, self._draw.choice(self._urls))
            except httpx.TransportError as error:
                self._count(type(error).__name__)
                time.sleep(PAUSE_SECONDS)

    def _ask(self, http: httpx.Client, url: str) -> None:
        if len(self._mine) >= self._most:
            self._delete(http, url)
            return
        self._numbers += 1
        wanted = self._wanted(f"{self._name}-{self._numbers}")
        body = {"flavor": wanted.flavor, "count": wanted.count, "min_count": 1}
        with self._books.lock:
            self._books.requests[wanted.name] = wanted
            self._books.perhaps.add(wanted.name)
        answer = self._asked(http, "POST", f"{url}/v1/instances", 202, LOST, json=body)
        if answer is None:
            return
        instances = answer.json()["instances"]
        with self._books.lock:
            self._books.perhaps.remove(wanted.name)
            self._books.accepted.update(dict.fromkeys(instances, wanted.name))
        self._mine += instances

    def _wanted(self, name: str) -> Wanted:
        # Now and then one that no host has room for.
        vcpus = 100_000 if self._draw.random() < 0.02 else self._draw.choice((1, 2, 4))
        count = self._draw.choice((1, 1, 1, 2, 3))
        return Wanted(name, vcpus, 512, count, self._draw.choice((0, 0, 1)))

    def _delete(self, http: httpx.Client, url: str) -> None:
        if not self._mine:
            return
        # The newest is perhaps on its way, the oldest runs.
        place = self._draw.choice((-1, 0, self._draw.randrange(len(self._mine))))
        uuid = self._mine[place]
        with self._books.lock:
            self._books.perhaps_deleted.add(uuid)
        answer = self._asked(http, "DELETE", f"{url}/v1/instances/{uuid}", 202, (*LOST, 404))
        if answer is None:
            return
        self._mine.remove(uuid)
        with self._books.lock:
            self._books.perhaps_deleted.remove(uuid)
            self._books.deleted.add(uuid)

    def _look(self, http: httpx.Client, url: str) -> None:
        with self._books.lock:
            mine = [uuid for uuid in self._mine if uuid not in self._books.perhaps_deleted]
        if mine:
            self._asked(http, "GET", f"{url}/v1/instances/{self._draw.choice(mine)}", 200, LOST)

    def _move(self, http: httpx.Client, url: str) -> None:
        """Move an instance, or give it another size. It may not be there yet, or not any more."""
        if not self._mine:
            return
        uuid, confirm = self._draw.choice(self._mine), self._draw.random() < 0.6
        body: dict[str, Any] = {"confirm": confirm}
        verb = "migrate"
        if self._draw.random() < 0.4:
            self._numbers += 1
            wanted = self._wanted(f"{self._name}-{self._numbers}")
            with self._books.lock:
                self._books.requests[wanted.name] = wanted
            verb, body = "resize", {**body, "flavor": wanted.flavor}
        path = f"{url}/v1/instances/{uuid}/{verb}"
        answer = self._asked(http, "POST", path, 202, (*LOST, 404, 409), json=body)
        if answer is not None and not confirm:
            self._moves.append(answer.json()["uuid"])

    def _settle(self, http: httpx.Client, url: str) -> None:
        """Confirm or revert a move, which may not be that far."""
        if self._moves:
            move = self._moves.pop(self._draw.randrange(len(self._moves)))
            word = self._draw.choice(("confirm", "revert", "revert", "abort"))
            self._asked(http, "POST", f"{url}/v1/moves/{move}/{word}", 202, (*LOST, 404, 409))

    def _power(self, http: httpx.Client, url: str) -> None:
        """Stop or shelve an instance, or have it run again. It may not be in a state for that."""
        if self._mine:
            uuid, word = self._draw.choice(self._mine), self._draw.choice(POWER_WORDS)
            body = {"json": {}} if word == "shelve" else {}
            self._asked(http, "POST", f"{url}/v1/instances/{uuid}/{word}", 202, (*LOST, 404, 409), **body)

    def _asked(
        self, http: httpx.Client, method: str, url: str, good: int, lost: Sequence[int], **more: Any
    ) -> httpx.Response | None:
        """The answer, None for one that leaves the outcome open. Others are noted as wrong."""
        answer = http.request(method, url, **more)
        self._count(f"{method} {answer.status_code}")
        if answer.status_code == good:
            return answer
        if answer.status_code not in lost:
            with self._books.lock:
                self._books.wrong.append(f"{method} {url}: {answer.status_code} {answer.text[:300]}")
        elif answer.status_code == 404 and method == "DELETE":
            self._gone(url.rpartition("/")[2])
        time.sleep(PAUSE_SECONDS)
        return None

    def _gone(self, uuid: str) -> None:
        """A deletion without an answer was carried out, or the instance is lost, which the end will show."""
        self._mine.remove(uuid)

    def _count(self, answer: str) -> None:
        with self._books.lock:
            self._books.answers[answer] += 1


class Load:
    """Users in threads of their own."""

    def __init__(self, users: Sequence[User], headers: dict[str, str]) -> None:
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self._headers = headers
        self._threads = [threading.Thread(target=self._run, args=(user,), daemon=True) for user in users]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop all users, and wait for their last answers. Raises the error of one that failed."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self, user: User) -> None:
        try:
            with httpx.Client(headers=self._headers, timeout=patience(20)) as http:
                user.run(http, self._stop)
        except BaseException as error:
            self._errors.append(error)

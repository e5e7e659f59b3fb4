"""Schedulers in processes of their own on one database, of which one is killed in the middle."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection

from support.databases import Place

Work = Callable[[str, str, int, Connection], None]
"""A worker: the URL of the database, the seed of its choices, the number of its requests, and a pipe."""

_PROCESSES = get_context("forkserver")
# Imported once for all workers.
_PROCESSES.set_forkserver_preload(["scheduler.group_worker", "scheduler.assignment_worker"])


class Racer:
    """A worker, and what it said. It is killed after ``kill_after`` messages."""

    def __init__(
        self, run: Work, place: Place, number: int, name: str, count: int, kill_after: int = 0
    ) -> None:
        self._pipe, theirs = Pipe()
        args = (place.at(number), f"{name}-{number}", count, theirs)
        self._worker = _PROCESSES.Process(target=run, args=args, daemon=True)
        self._worker.start()
        theirs.close()
        self._kill_after = kill_after
        self.count = count
        self.said: list[tuple[str, ...]] = []

    def run(self) -> None:
        """Let it work to its end."""
        self._pipe.send("go")
        while True:
            try:
                self.said.append(self._pipe.recv())
            except (EOFError, OSError):
                break
            if len(self.said) == self._kill_after:
                self._worker.kill()
        self._worker.join()

    def wait_until_ready(self) -> None:
        assert self._pipe.recv() == ("ready",)

    def kill(self) -> None:
        self._worker.kill()
        self._worker.join()
        self._pipe.close()

    def answers(self) -> Counter[str]:
        return Counter(word for word, *_ in self.said)

    @property
    def whole(self) -> bool:
        """Whether each of its requests was answered, and it came to its end."""
        said = self.answers()
        return said["answered"] + said["refused"] == self.count and said["done"] == 1

    def acknowledged(self) -> dict[str, str]:
        """What it was told to hold, and has not begun to change since: instance -> node."""
        held: dict[str, str] = {}
        for word, *rest in self.said:
            if word == "placed":
                held[rest[0]] = rest[1]
            elif word in ("freeing", "moving"):
                held.pop(rest[0])
        return held


def race(run: Work, place: Place, count: int, name: str, kill_after: int) -> list[Racer]:
    """Two racers, ``count`` requests each, and a third in place of the one that is killed."""

    racers = [
        Racer(run, place, 0, name, count, kill_after),
        Racer(run, place, 1, name, count),
        Racer(run, place, 2, name, count // 2),
    ]
    try:
        for racer in racers:
            racer.wait_until_ready()
        killed, through, third = racers
        with ThreadPoolExecutor(2) as threads:
            other = threads.submit(through.run)
            threads.submit(lambda: (killed.run(), third.run())).result()
            other.result()
    finally:
        for racer in racers:
            racer.kill()
    assert through.whole, through.answers()
    assert third.whole, third.answers()
    assert not killed.answers()["done"]
    return racers

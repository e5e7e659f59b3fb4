"""Simulated time: acts in the order of their times, and of their registration where times are equal."""

import heapq
from collections.abc import Callable
from typing import Any


class Stuck(Exception):
    """A schedule does more than it may."""


class Loop:
    """A queue of acts in simulated seconds. Deterministic."""

    def __init__(self) -> None:
        self.now = 0.0
        self.acts = 0
        self._queue: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._number = 0

    def after(self, seconds: float, act: Callable[..., object], *arguments: Any) -> None:
        """Do something ``seconds`` from now."""
        self._number += 1
        heapq.heappush(self._queue, (self.now + seconds, self._number, act, arguments))

    def run(self, until: float, most: int) -> None:
        """Act until a time, or until nothing is left to do.

        Raises: `Stuck` after ``most`` acts.
        """
        queue = self._queue
        for _ in range(most):
            if not queue or queue[0][0] > until:
                self.now = max(self.now, until)
                return
            self.now, _, act, arguments = heapq.heappop(queue)
            self.acts += 1
            act(*arguments)
        raise Stuck(f"{most} acts, and it is only {self.now:.3f} s of {until:.3f} s")

"""Simulated time for generators that yield seconds to sleep for, or gates to wait for. Deterministic."""

import heapq
from collections.abc import Callable, Generator
from typing import Any

Process = Generator[Any, Any, Any]


class Stuck(Exception):
    """A schedule does not come to its end."""


class Gate:
    """Something to wait for. All that wait go on, in their order, when it opens."""

    def __init__(self, loop: "Loop") -> None:
        self._loop = loop
        self._waiting: list[Process] = []
        self.is_open = False

    def open(self) -> None:
        self.is_open = True
        for process in self._waiting:
            self._loop.after(0.0, self._loop.step, process)
        self._waiting = []

    def add(self, process: Process) -> None:
        if self.is_open:
            self._loop.after(0.0, self._loop.step, process)
        else:
            self._waiting.append(process)


class Loop:
    """Runs processes in simulated seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0

    def after(self, seconds: float, act: Callable[..., None], *arguments: Any) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now + seconds, self._number, act, arguments))

    def spawn(self, process: Process) -> None:
        self.after(0.0, self.step, process)

    def step(self, process: Process) -> None:
        try:
            waits_for = process.send(None)
        except StopIteration:
            return
        if isinstance(waits_for, Gate):
            waits_for.add(process)
        else:
            self.after(waits_for, self.step, process)

    def run(self, steps: int) -> None:
        """Run until nothing is left to do. Raises: `Stuck` after so many steps."""
        for _ in range(steps):
            if not self._queue:
                return
            self.now, _, act, arguments = heapq.heappop(self._queue)
            act(*arguments)
        raise Stuck(f"not at its end after {steps} steps, at {self.now:.3f} s")


class Lock:
    """Held by one process at a time, in the order of asking."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._held = False
        self._waiting: list[Gate] = []

    def acquire(self) -> Process:
        if self._held:
            gate = Gate(self._loop)
            self._waiting.append(gate)
            yield gate
        self._held = True

    def release(self) -> None:
        # Handed over: nobody comes between.
        if self._waiting:
            self._waiting.pop(0).open()
        else:
            self._held = False

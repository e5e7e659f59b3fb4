"""Topics that machines of one process wait for."""

import asyncio
from collections import Counter, defaultdict


class Wakes:
    """Counts the wakes of each topic, and wakes the tasks that wait for it. For one event loop."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._waiting: defaultdict[str, set[asyncio.Future[bool]]] = defaultdict(set)

    def wake(self, topic: str) -> None:
        """Wake all tasks that wait for a topic, or that wait for it later and have not seen this wake."""
        self._counts[topic] += 1
        for waiter in self._waiting.pop(topic, ()):
            _end(waiter, True)

    async def wait(self, topic: str, seconds: float, seen: dict[str, int]) -> bool:
        """Wait for a topic, at most ``seconds``; returns whether it was woken.

        ``seen``: the counts that the waiting machine has seen, by topic. It is updated.
        """
        woken = seen.get(topic) != self._counts[topic]
        if not woken:
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[bool] = loop.create_future()
            self._waiting[topic].add(waiter)
            # Neither wait_for, which loses a cancellation that comes together with the result, nor timeout,
            # which costs as much as the rest of a poll.
            timer = loop.call_later(seconds, _end, waiter, False)
            try:
                woken = await waiter
            finally:
                timer.cancel()
                self._forget(topic, waiter)
        seen[topic] = self._counts[topic]
        return woken

    def _forget(self, topic: str, waiter: "asyncio.Future[bool]") -> None:
        waiting = self._waiting.get(topic)
        if waiting is not None:
            waiting.discard(waiter)
            if not waiting:
                del self._waiting[topic]


def _end(waiter: "asyncio.Future[bool]", woken: bool) -> None:
    if not waiter.done():
        waiter.set_result(woken)

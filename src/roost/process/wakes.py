"""Topics that the coroutines of one process wait for."""

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

    def listen(self, topic: str, *, from_now: bool = False) -> "TopicListener":
        """Return a listener to a topic. ``from_now``: earlier wakes do not count."""
        return TopicListener(self, topic, self._counts[topic] if from_now else None)

    def count(self, topic: str) -> int:
        """Return how often a topic was woken."""
        return self._counts[topic]

    async def wait(self, topic: str, seconds: float) -> bool:
        """Wait for the next wake of a topic, at most ``seconds``; returns whether it came."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiting[topic].add(waiter)
        # Neither wait_for, which loses a cancellation that comes together with the result, nor timeout,
        # which costs as much as the rest of a poll.
        timer = loop.call_later(seconds, _end, waiter, False)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._forget(topic, waiter)

    def _forget(self, topic: str, waiter: "asyncio.Future[bool]") -> None:
        waiting = self._waiting.get(topic)
        if waiting is not None:
            waiting.discard(waiter)
            if not waiting:
                del self._waiting[topic]


class TopicListener:
    """Waits for the wakes of a topic that it has not seen. ``seen``: their number; None: the first wait ends
    at once."""

    def __init__(self, wakes: Wakes, topic: str, seen: int | None) -> None:
        self._wakes = wakes
        self._topic = topic
        self._seen = seen

    async def wait(self, seconds: float) -> bool:
        """Wait until the topic is woken, at most ``seconds``; returns whether it was.

        A wake since the last wait counts. So a coroutine that reads, finds no work and then waits misses no
        wake.
        """
        woken = self._seen != self._wakes.count(self._topic) or await self._wakes.wait(self._topic, seconds)
        self._seen = self._wakes.count(self._topic)
        return woken


def _end(waiter: "asyncio.Future[bool]", woken: bool) -> None:
    if not waiter.done():
        waiter.set_result(woken)

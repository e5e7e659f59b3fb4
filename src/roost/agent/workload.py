"""The orders of one host that are under way, and the results that its cell does not have yet.

Orders for one instance run one after the other. An order is outranked by one of a later attempt, and an order
to build by the order to destroy the same attempt. An order that outranks a build ends it.
"""

from collections.abc import Callable
from typing import NamedTuple

from roost.agent.agent_context import AgentContext
from roost.agent.errors import ANY_FAULT, BuildEnded, BuildFailed
from roost.agent.protocol.errors import AgentProtocolError
from roost.agent.protocol.questions import Confirm
from roost.agent.protocol.types import Build, Destroy, Destroyed, Order
from roost.model.instance import BuildResult
from roost.model.text import error_text
from roost.process.logs import RequestIds
from roost.process.metrics import catalogue as metrics

OVERTIME = "TimedOut"
"""The code of builds that took too long."""

LONGEST_PAUSE = 30.0
"""Seconds between two attempts at something that fails again and again, at most."""

Key = tuple[str, int]


class _Given(NamedTuple):
    """An order, and when its agent sent the poll that brought it (monotonic seconds)."""

    order: Order
    asked: float

    @property
    def rank(self) -> tuple[int, bool]:
        return self.order.key[1], isinstance(self.order, Destroy)


class AgentWorkload:
    """The orders under way on a host and their results. The polls of the host send the results.

    ``confirmation``: returns the question whether an attempt at an instance may start; None while no order
    may be carried out. ``start_seconds``: the limit for the start of a guest. ``retry_seconds``: the first
    pause after a failure.
    """

    def __init__(
        self,
        context: AgentContext,
        host: str,
        topic: str,
        confirmation: Callable[[str, int], Confirm | None],
        start_seconds: float,
        retry_seconds: float,
    ) -> None:
        self._context = context
        self._host = host
        self._topic = topic
        self._confirmation = confirmation
        self._start_seconds = start_seconds
        self._retry_seconds = retry_seconds
        self._current: dict[str, _Given] = {}
        self._next: dict[str, _Given] = {}
        self._outranked: set[tuple[bool, str, int]] = set()
        self._stored: dict[tuple[bool, str, int], int] = {}
        self.results: dict[Key, BuildResult] = {}
        self.destroyed: dict[Key, Destroyed] = {}
        self.failed_builds = 0
        self.took = 0.0
        """Seconds that the last completed order took."""

    @property
    def busy(self) -> frozenset[str]:
        """The instances with an order under way."""
        return frozenset(self._current)

    @property
    def under_construction(self) -> frozenset[str]:
        """The instances that are being built."""
        return frozenset(uuid for uuid, each in self._current.items() if isinstance(each.order, Build))

    def known(self, destroying: bool) -> tuple[Key, ...]:
        """Return the orders to destroy, or to build, that the cell need not send again."""
        given = [*self._current.values(), *self._next.values()]
        keys = {each.order.key for each in given if isinstance(each.order, Destroy) is destroying}
        keys.update((uuid, attempt) for kind, uuid, attempt in self._outranked if kind is destroying)
        return tuple(sorted(keys))

    def acknowledged(
        self, results: tuple[BuildResult, ...], destroyed: tuple[Destroyed, ...], counter: int
    ) -> None:
        """Note that the cell has stored these, by the poll with this number."""
        for result in results:
            self.results.pop((result.instance, result.attempt), None)
            self._stored[False, result.instance, result.attempt] = counter
        for each in destroyed:
            self.destroyed.pop((each.instance, each.attempt), None)
            self._stored[True, each.instance, each.attempt] = counter

    def forget(self, oldest: int | None) -> None:
        """Note that no poll before number ``oldest`` can be answered any more; None: no poll at all."""
        kept = {} if oldest is None else self._stored
        self._stored = {key: counter for key, counter in kept.items() if oldest and counter > oldest}

    def take(self, order: Order, asked: float, counter: int) -> None:
        """Begin an order, unless it is known, done or outranked.

        ``asked`` and ``counter``: the time (monotonic seconds) and the number of the poll that brought it.
        """
        given = _Given(order, asked)
        instance = order.key[0]
        destroys = isinstance(order, Destroy)
        if order.key in (self.destroyed if destroys else self.results):
            return
        # The answer may be older than the poll by which the cell has the result.
        if self._stored.get((destroys, *order.key), 0) > counter:
            return
        current, following = self._current.get(instance), self._next.get(instance)
        if current is None:
            self._current[instance] = given
            requests = RequestIds(order.instance.request_id) if isinstance(order, Build) else None
            self._context.start(f"{self._topic}/{instance}", self._work(given), requests)
            return
        highest = max(each.rank for each in (current, following) if each is not None)
        if given.rank < highest:
            self._outranked.add((destroys, *order.key))
        elif given.rank > highest:
            self._next[instance] = given
            if isinstance(current.order, Build) and following is None:
                self._context.start(f"{self._topic}/{instance}/end", self._end_build(current))

    async def _work(self, given: _Given) -> None:
        """Carry out an order, and then the orders that came for the instance meanwhile."""
        instance = given.order.key[0]
        while True:
            began = self._context.monotonic()
            if isinstance(given.order, Destroy):
                guest = await self._destroy(given.order)
                self.took = self._context.monotonic() - began
                self.destroyed[given.order.key] = Destroyed(*given.order.key, guest)
            elif isinstance(given.order, Build):
                result = await self._build(given.order, given.asked)
                self.took = self._context.monotonic() - began
                if result is not None:
                    self.results[given.order.key] = result
                    self.failed_builds = 0 if result.failure is None else self.failed_builds + 1
                    outcome = "built" if result.failure is None else "failed"
                    metrics.BUILDS.labels(outcome).inc()
            following = self._next.pop(instance, None)
            if following is None:
                break
            self._current[instance] = given = following
        del self._current[instance]
        self._outranked = {each for each in self._outranked if each[1] != instance}
        self._context.wake(self._topic)

    async def _end_build(self, build: _Given) -> None:
        """End a build that is outranked. The order that outranks it destroys the rest."""
        instance = build.order.key[0]
        pause = self._retry_seconds
        while self._current.get(instance) is build:
            try:
                await self._context.driver.destroy(instance)
                return
            except Exception as error:
                self._tell("the driver failed to end a build", instance, error)
            await self._context.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _destroy(self, order: Destroy) -> int | None:
        """Destroy an attempt and all before it; returns the attempt of the guest that ran, if any."""
        pause = self._retry_seconds
        while True:
            try:
                guest = (await self._context.driver.guests()).get(order.instance)
                if guest is not None and guest > order.attempt:
                    return None
                await self._context.driver.destroy(order.instance)
                return guest
            except Exception as error:
                self._tell("the driver failed to destroy", order.instance, error)
            await self._context.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _build(self, order: Build, asked: float) -> BuildResult | None:
        """Build an instance; returns None if the attempt is no longer wanted or not this host's to judge."""
        instance, attempt = order.key
        try:
            there = (await self._context.driver.guests()).get(instance)
            if there is not None and there >= attempt:
                return BuildResult(instance, self._host, attempt) if there == attempt else None
            if there is not None:
                await self._context.driver.destroy(instance)
            deadline = asked + order.seconds
            left = deadline - self._context.monotonic()
            if left <= 0:
                return None
            await self._context.within(left, self._context.driver.prepare(order.instance))
            wanted = await self._confirm(order.key, deadline)
            if wanted is None:
                raise TimeoutError
        except BuildEnded:
            return None
        except Exception as error:
            failure = self._failure(order, error, order.seconds)
            await self._clean_once(instance)
            return failure
        if not wanted:
            await self._clean_once(instance)
            return None
        try:
            await self._context.within(self._start_seconds, self._context.driver.start(order.instance))
        except BuildEnded:
            return None
        except Exception as error:
            failure = self._failure(order, error, self._start_seconds)
            # The guest may run all the same: no other host may build it before it is gone.
            await self._destroy(Destroy(instance, attempt))
            return failure
        return BuildResult(instance, self._host, attempt)

    async def _confirm(self, key: Key, deadline: float) -> bool | None:
        """Return whether the cell still wants an attempt; None if it does not say so before the deadline."""
        pause = self._retry_seconds
        while True:
            question = self._confirmation(*key)
            if question is not None:
                try:
                    answer = await self._context.cell.ask(question)
                    if answer is not None:
                        return answer
                    pause = self._retry_seconds
                except AgentProtocolError as error:
                    values = {"host": self._host, "instance": key[0], "error": error_text(error)}
                    self._context.log("a build cannot be confirmed now", values, "warning")
            if self._context.monotonic() + pause >= deadline:
                return None
            await self._context.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _failure(self, order: Build, error: Exception, seconds: float) -> BuildResult:
        instance, attempt = order.key
        code, retryable = ANY_FAULT, True
        if isinstance(error, BuildFailed):
            reason, code, retryable = error_text(error), error.code, error.retryable
        elif isinstance(error, TimeoutError):
            reason, code = f"the build took longer than {seconds:g} seconds", OVERTIME
        else:
            # A driver's own bug must not cost the instance its alternates.
            self._tell("the driver failed", instance, error)
            reason = f"{type(error).__name__}: {error_text(error)}"
        return BuildResult(instance, self._host, attempt, reason, code, retryable)

    async def _clean_once(self, instance: str) -> None:
        """Remove the parts of a guest that never started; if that fails, they only take space."""
        try:
            await self._context.driver.destroy(instance)
        except Exception as error:
            self._tell("the driver failed to clean up", instance, error)

    def _tell(self, event: str, instance: str, error: Exception) -> None:
        values = {"host": self._host, "instance": instance, "error": error_text(error)}
        self._context.log(event, values, "error", error)

"""The orders of one host that are under way.

Orders for one instance run one after the other. An order is outranked by one of a later attempt. Of one
attempt the order to destroy outranks all others, and orders to stop and to start, to have a guest go and to
end that, outrank the one to build; of these the one from the newer poll counts. An order that outranks a
build or a migration ends it. An order to stop or to start a guest that is still being built fails.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from roost.agent.agent_context import AgentContext
from roost.agent.errors import ANY_FAULT, BuildEnded, BuildFailed, CannotStopGuests, HostFenced, NoSuchGuest
from roost.agent.live_moves import LONGEST_PAUSE, LiveMoves
from roost.agent.protocol.errors import AgentProtocolError
from roost.agent.protocol.questions import Confirm
from roost.agent.protocol.types import (
    Build,
    CancelMigration,
    Destroy,
    Destroyed,
    MigrateGuest,
    Order,
    OrderKind,
    PortsReleased,
    ReceiveGuest,
    StartGuest,
    StopGuest,
)
from roost.agent.unstored_results import OPPOSITES, UnstoredResults
from roost.model.instance import REBUILDS, BuildResult
from roost.model.text import error_text
from roost.process.logs import RequestIds
from roost.process.metrics import catalogue as metrics

OVERTIME = "TimedOut"
"""The code of builds that took too long."""

Key = tuple[str, int]

_RANKS: dict[OrderKind, int] = {
    **dict.fromkeys(("build", "receive"), 0),
    **dict.fromkeys(("stop", "start", "migrate", "cancel"), 1),
    "destroy": 2,
}


class _Given(NamedTuple):
    """An order, and when its agent sent the poll that brought it (monotonic seconds)."""

    order: Order
    asked: float

    @property
    def rank(self) -> tuple[int, int]:
        return self.order.key[1], _RANKS[self.order.kind]


class AgentWorkload:
    """The orders under way on a host. ``unstored``: their results, which the polls of the host send.

    ``confirmation``: returns the question whether an attempt at an instance may start; None while no order
    may be carried out. ``start_seconds``: the limit for the start of a guest. ``retry_seconds``: the first
    pause after a failure. ``may_start``: whether guests may be started now, and ``settled``: called with each
    order that is over and when it began, for a fence (`roost.agent.fence`). ``starting``: the instances whose
    guests are being started, or may come from other hosts.
    """

    may_start: Callable[[], bool]
    settled: Callable[[Order, float], Awaitable[None]]

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
        self._outranked: set[tuple[OrderKind, str, int]] = set()
        self._starting: set[str] = set()
        self.may_start = lambda: True
        self.settled = _nothing
        self._live = LiveMoves(
            context,
            host,
            confirmation,
            self._next.__contains__,
            lambda order, error: self._failure(order, error, order.seconds),
            retry_seconds,
        )
        self.unstored = UnstoredResults()
        self.failed_builds = 0
        self.took = 0.0
        """Seconds that the last completed order took."""

    @property
    def busy(self) -> frozenset[str]:
        """The instances with an order under way."""
        return frozenset(self._current)

    def leaves_alone(self, instance: str, attempt: int) -> bool:
        """Return whether the orders under way for an instance leave its guest of an attempt as it is.

        Those that destroy an earlier attempt, or one beside it, do.
        """
        given = [each.get(instance) for each in (self._current, self._next)]
        return all(
            isinstance(each.order, Destroy) and (each.order.attempt < attempt or each.order.keeps == attempt)
            for each in given
            if each is not None
        )

    @property
    def under_construction(self) -> frozenset[str]:
        """The instances that are being built."""
        building = Build | ReceiveGuest
        return frozenset(uuid for uuid, each in self._current.items() if isinstance(each.order, building))

    @property
    def starting(self) -> frozenset[str]:
        """The instances whose guests are being started, or may come from other hosts."""
        coming = (uuid for uuid, each in self._current.items() if isinstance(each.order, ReceiveGuest))
        return frozenset(self._starting).union(coming)

    def end_starts(self) -> None:
        """End the builds whose guests are being started or may come. The cell orders them again."""
        for instance in sorted(self.starting):
            given = self._current.get(instance)
            if given is not None and isinstance(given.order, Build | ReceiveGuest):
                self._context.start(f"{self._topic}/{instance}/end", self._end_build(given))

    def known(self, kind: OrderKind) -> tuple[Key, ...]:
        """Return the orders of a kind that the cell need not send again."""
        given = [*self._current.values(), *self._next.values()]
        keys = {each.order.key for each in given if each.order.kind == kind}
        keys.update((uuid, attempt) for outranked, uuid, attempt in self._outranked if outranked == kind)
        # The cell must be able to order once more what another order has reversed.
        opposite = OPPOSITES.get(kind)
        keys.difference_update(each.order.key for each in self._next.values() if each.order.kind == opposite)
        return tuple(sorted(keys))

    def take(self, order: Order, asked: float, counter: int) -> None:
        """Begin an order, unless it is known, done or outranked.

        ``asked`` and ``counter``: the time (monotonic seconds) and the number of the poll that brought it.
        """
        given = _Given(order, asked)
        instance = order.key[0]
        if self.unstored.is_settled(order, counter):
            return
        if isinstance(order, StopGuest | StartGuest):
            self.unstored.reverse(order, counter)
        current, following = self._current.get(instance), self._next.get(instance)
        if current is None:
            self._current[instance] = given
            ids = None
            if isinstance(order, Build | StartGuest | ReceiveGuest):
                ids = RequestIds(order.instance.request_id)
            self._context.start(f"{self._topic}/{instance}", self._work(given), ids)
            return
        last = following or current
        if given.rank < last.rank:
            self._outranked.add((order.kind, *order.key))
        elif isinstance(order, StopGuest | StartGuest) and _builds(last.order, order.key):
            self.unstored.switched(order, "the guest is still being built")
            self._context.wake(self._topic)
        elif given.rank > last.rank or order.kind != last.order.kind:
            self._next[instance] = given
            if isinstance(current.order, Build | ReceiveGuest) and following is None:
                self._context.start(f"{self._topic}/{instance}/end", self._end_build(current))
            elif isinstance(current.order, MigrateGuest) and following is None:
                end = self._live.end(instance, lambda: self._current.get(instance) is current)
                self._context.start(f"{self._topic}/{instance}/end", end)

    async def _work(self, given: _Given) -> None:
        """Carry out an order, and then the orders that came for the instance meanwhile."""
        instance = given.order.key[0]
        while True:
            began = self._context.monotonic()
            order = given.order
            match order:
                case Destroy():
                    guest = await self._destroy(order)
                    self.unstored.destroyed[order.key] = Destroyed(*order.key, guest)
                case Build() | ReceiveGuest():
                    result = await (
                        self._build(order, given.asked)
                        if isinstance(order, Build)
                        else self._live.receive(order, given.asked)
                    )
                    if result is not None:
                        self.unstored.builds[order.key] = result
                        self.failed_builds = 0 if result.failure is None else self.failed_builds + 1
                        outcome = "built" if result.failure is None else "failed"
                        metrics.BUILDS.labels(outcome).inc()
                case StopGuest() | StartGuest() | MigrateGuest() | CancelMigration():
                    match order:
                        case MigrateGuest():
                            failure = await self._live.migrate(order)
                        case CancelMigration():
                            failure = await self._live.cancel(order)
                        case _:
                            failure = await self._switch(order)
                    # The cell must not take for the state of the guest what the next order changes at once.
                    if instance not in self._next:
                        self.unstored.switched(order, failure)
            await self.settled(order, began)
            self.took = self._context.monotonic() - began
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
                await self._context.driver.destroy(instance, _released_by(build.order), _alone(build.order))
                return
            except Exception as error:
                self._tell("the driver failed to end a build", instance, error)
            await self._context.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _switch(self, order: StopGuest | StartGuest) -> str | None:
        """Stop or start a guest; returns the reason of a failure, None if the guest is stopped or runs.

        It is tried until ``start_seconds`` have passed, or until another order follows.
        """
        instance = order.key[0]
        deadline = self._context.monotonic() + self._start_seconds
        pause = self._retry_seconds
        while True:
            try:
                left = deadline - self._context.monotonic()
                return await self._context.within(left, self._switch_once(order))
            except (CannotStopGuests, NoSuchGuest) as error:
                return error_text(error)
            except HostFenced as error:
                # The order stands, and the time is not the driver's.
                failure = error_text(error)
                deadline = self._context.monotonic() + self._start_seconds
            except TimeoutError:
                return f"the driver took longer than {self._start_seconds:g} seconds"
            except Exception as error:
                self._tell(f"the driver failed to {order.kind} a guest", instance, error)
                failure = error_text(error)
            if instance in self._next or self._context.monotonic() + pause >= deadline:
                return failure
            await self._context.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _switch_once(self, order: StopGuest | StartGuest) -> None:
        instance, attempt = order.key
        there = (await self._context.driver.guests()).get(instance)
        if there not in (None, attempt):
            raise NoSuchGuest(f"the guest of attempt {there} runs, and not that of attempt {attempt}")
        if isinstance(order, StopGuest):
            await self._context.driver.stop(instance)
        elif there is None:
            driver = self._context.driver
            await self._started(instance, lambda: driver.start_again(order.instance, order.over))

    async def _destroy(self, order: Destroy) -> int | None:
        """Destroy an attempt and all before it; returns the attempt of the guest that ran, if any."""
        pause = self._retry_seconds
        while True:
            try:
                guest = (await self._context.driver.guests()).get(order.instance)
                if order.keeps is not None and await self._context.driver.resizes_in_place():
                    await self._context.driver.destroy(order.instance, order.ports, order.attempt)
                    return guest if guest == order.attempt else None
                if guest is not None and (guest > order.attempt or guest == order.keeps):
                    return None
                ports = "all" if order.ends_instance and order.ports != "every" else order.ports
                await self._context.driver.destroy(order.instance, ports)
                if order.ends_instance:
                    await self._context.driver.remove_disks(order.instance)
                return guest
            except Exception as error:
                self._tell("the driver failed to destroy", order.instance, error)
            await self._context.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _build(self, order: Build, asked: float) -> BuildResult | None:
        """Build an instance; returns None if the attempt is no longer wanted or not this host's to judge."""
        (instance, attempt), released = order.key, _released_by(order)
        try:
            there = (await self._context.driver.guests()).get(instance)
            if there is not None and there >= attempt:
                return BuildResult(instance, self._host, attempt) if there == attempt else None
            if there is not None and order.beside is not None:
                raise BuildFailed(f"the guest of attempt {there} runs")
            if there is not None:
                await self._context.driver.destroy(instance, released)
            deadline = asked + order.seconds
            left = deadline - self._context.monotonic()
            if left <= 0:
                return None
            await self._context.within(left, self._context.driver.prepare(order.instance, order.beside))
            wanted = await self._confirm(order.key, deadline)
            if wanted is None:
                raise TimeoutError
        except BuildEnded:
            return None
        except Exception as error:
            failure = self._failure(order, error, order.seconds)
            await self._clean_once(order)
            return failure
        if not wanted:
            await self._clean_once(order)
            return None
        try:
            driver = self._context.driver
            # A guest that is prepared is a stopped one.
            last = (
                self._started(instance, lambda: driver.start(order.instance))
                if order.instance.starts
                else driver.stop(instance)
            )
            await self._context.within(self._start_seconds, last)
        except (BuildEnded, HostFenced):
            return None
        except Exception as error:
            failure = self._failure(order, error, self._start_seconds)
            # The guest may run all the same: no other host may build it before it is gone.
            await self._destroy(Destroy(instance, attempt, ports=released, keeps=order.beside))
            return failure
        return BuildResult(instance, self._host, attempt)

    async def _started(self, instance: str, start: Callable[[], Awaitable[None]]) -> None:
        """Start a guest, unless the host is fenced. Raises `HostFenced`."""
        # Noted first: a fence counts a guest as stopped only if no start is under way.
        self._starting.add(instance)
        try:
            if not self.may_start():
                raise HostFenced(f"the guest of {instance} is not started before the cell is heard")
            await start()
        finally:
            self._starting.discard(instance)

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

    def _failure(self, order: Build | ReceiveGuest, error: Exception, seconds: float) -> BuildResult:
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

    async def _clean_once(self, order: Build) -> None:
        """Remove the parts of a guest that never started; if that fails, they only take space."""
        instance = order.instance.uuid
        try:
            await self._context.driver.destroy(instance, _released_by(order), _alone(order))
        except Exception as error:
            self._tell("the driver failed to clean up", instance, error)

    def _tell(self, event: str, instance: str, error: Exception) -> None:
        values = {"host": self._host, "instance": instance, "error": error_text(error)}
        self._context.log(event, values, "error", error)


def _builds(order: Order, key: Key) -> bool:
    return isinstance(order, Build | ReceiveGuest) and order.key == key


def _alone(order: Order) -> int | None:
    """Return the attempt of a build beside another one, which alone is destroyed; None: all is."""
    return order.key[1] if isinstance(order, Build) and order.beside is not None else None


def _released_by(order: Order) -> PortsReleased:
    """Return the ports that an instance loses with a build that ends.

    A guest that moves leaves its ports to the host that starts it next, and one that is rebuilt to the next.
    Those of an instance that is unshelved are bound again by the next attempt.
    """
    if isinstance(order, ReceiveGuest):
        return "none"
    if not isinstance(order, Build):
        return "host"
    if order.instance.shelf is not None:
        return "unbound"
    return "none" if order.instance.move is not None or order.instance.state in REBUILDS else "host"


async def _nothing(order: Order, began: float) -> None:
    """Do nothing with an order that is over: the host has no fence."""

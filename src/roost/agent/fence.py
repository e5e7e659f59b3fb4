"""The fence of a host: without an answer of its cell for long enough, its agent stops all guests.

The cell may then count the guests as stopped, and have them run elsewhere: `roost.model.fence` says when. The
time runs from the moment before the last message was sent that has left a trace in the cell's database. So an
answer that is lost, or that tells of nothing stored, only lets the fence come earlier.

Until the cell is heard again nothing is started. The guests that were stopped are written down before, and
told to the cell until it has ordered what becomes of them: the agent starts none by itself.

An agent that has ended or stands still stops nothing. A watchdog closes that gap: it resets the machine
unless it is touched, and it is touched only while the time is not over, or while no guest runs.
"""

from collections.abc import Set
from math import inf

from roost.agent.agent_context import AgentContext
from roost.agent.errors import StateUnusable
from roost.agent.protocol.types import Destroy, Guest, Order, StopGuest
from roost.agent.troubles import Troubles
from roost.agent.workload import AgentWorkload
from roost.model.fence import Fence

LOOK_SECONDS = 1.0
"""Seconds between two looks at the time, and at the guests once it is over."""

_NOT_TOLD = "the guests of a host that is cut off cannot be listed"
_NOT_STOPPED = "guests of a host that is cut off cannot be stopped"
_NOT_KEPT = "what a fence needs after a start of the agent cannot be kept"
_NOT_TOUCHED = "the watchdog cannot be touched: the machine will be reset"


class AgentFence:
    """The fence of one host. ``fence``: its times.

    ``answered_at``: monotonic seconds of the machine from which the time runs. ``stopped``: the guests that
    were stopped and whose fate the cell has not ordered: instance -> attempt. ``_stopped_at``: when this
    agent has stopped them last, in monotonic seconds; others in ``stopped`` were by an earlier one.
    """

    def __init__(
        self, context: AgentContext, host: str, fence: Fence, work: AgentWorkload, troubles: Troubles
    ) -> None:
        self._context = context
        self._host = host
        self._times = fence
        self._work = work
        self._troubles = troubles
        self.answered_at = context.monotonic()
        self.stopped: dict[str, int] = {}
        self._stopped_at: dict[str, float] = {}
        self._is_quiet = False
        self._fired_at: float | None = None

    async def load(self) -> None:
        """Take over what the last agent of the host has kept. Raises `StateUnusable`."""
        state = self._context.state
        self.stopped = await state.load_fenced()
        kept = await state.load_answered()
        # Without one the cell does not rely on a fence, or the machine has started since: no guest runs.
        self.answered_at = self._context.monotonic() if kept is None else kept

    async def begin(self) -> None:
        """Keep from when the time runs, before the cell is told of the fence. Raises `StateUnusable`."""
        await self._context.state.keep_answered(self.answered_at)

    @property
    def is_over(self) -> bool:
        """Return whether the cell was not heard for the time of the fence."""
        return self._context.monotonic() >= self.answered_at + self._times.seconds

    def may_start(self) -> bool:
        """Return whether guests may be started now."""
        return not self.is_over

    async def answered(self, sent: float) -> None:
        """Note an answer of the cell to a message that its database has a trace of.

        ``sent``: monotonic seconds before the message was sent for the first time.
        """
        if sent <= self.answered_at:
            return
        self.answered_at = sent
        try:
            await self._context.state.keep_answered(sent)
            self._troubles.over(_NOT_KEPT)
        except StateUnusable as error:
            # After a start the fence then comes earlier.
            self._troubles.tell(_NOT_KEPT, error, "error")

    def told(self, running: dict[str, int]) -> tuple[Guest, ...]:
        """Return the guests that were stopped, for a poll that tells which run."""
        gone = self.stopped.keys() - running.keys()
        return tuple(Guest(each, self.stopped[each]) for each in sorted(gone))

    async def seen(self, running: dict[str, int]) -> None:
        """Note the guests that ran when the cell was heard: these are not stopped any more."""
        again = self.stopped.keys() & running.keys()
        if again and self._fired_at is None:
            await self._forget(again)

    async def settle(self, order: Order, began: float) -> None:
        """Note that an order of the cell about an instance, which began at ``began``, is over.

        The cell has decided then what becomes of a guest that was stopped, but not of a later attempt, nor of
        one that stays beside it. A guest that was to run, and was stopped while the order was under way, is
        still to be told: its result does not say that it does not run any more.
        """
        instance, attempt = order.key
        stopped = self.stopped.get(instance)
        if stopped is None or stopped > attempt:
            return
        if isinstance(order, Destroy) and stopped == order.keeps:
            return
        rests = isinstance(order, StopGuest | Destroy)
        # One of before this agent was started, at the latest, was stopped before the order.
        if rests or self._stopped_at.get(instance, -inf) < began:
            await self._forget({instance})

    async def run(self) -> None:
        """Stop all guests whenever the time is over, for ever."""
        while True:
            left = self.answered_at + self._times.seconds - self._context.monotonic()
            if left > 0:
                self._end()
                await self._touch()
                await self._context.sleep(min(left, LOOK_SECONDS))
                continue
            if self._fired_at is None:
                self._fired_at = self._context.monotonic()
                values = {"host": self._host, "seconds": self._times.seconds}
                self._context.log(
                    "the cell was not heard: all guests of the host are stopped", values, "error"
                )
            await self._stop_all()
            if self._is_quiet:
                await self._touch()
            await self._context.sleep(LOOK_SECONDS)

    def _end(self) -> None:
        """Note that the cell is heard."""
        if self._fired_at is None:
            return
        self._fired_at, self._is_quiet = None, False
        values = {"host": self._host, "stopped": len(self.stopped)}
        self._context.log("the cell is heard again: it orders which guests are started", values, "warning")

    async def _stop_all(self) -> None:
        """Stop all guests that run; note whether none runs or is being started any more."""
        self._is_quiet = False
        self._work.end_starts()
        running = await self._guests()
        if running is None:
            return
        if running:
            self.stopped |= running
            self._stopped_at |= dict.fromkeys(running, self._context.monotonic())
            await self._keep_stopped()
            await self._context.together([self._power_off(each) for each in sorted(running)])
            running = await self._guests()
        is_quiet = running == {} and not self._work.starting
        if is_quiet:
            self._troubles.over(_NOT_STOPPED)
        elif self._fired_at is not None and self._is_late(self._fired_at):
            why = f"some run {self._times.stop_seconds:g} seconds after the fence: the host is not fenced"
            self._troubles.tell(_NOT_STOPPED, why, "error")
        self._is_quiet = is_quiet

    def _is_late(self, fired_at: float) -> bool:
        return self._context.monotonic() - fired_at >= self._times.stop_seconds

    async def _guests(self) -> dict[str, int] | None:
        """Return the guests that run; None if the driver does not tell."""
        try:
            running = await self._context.driver.guests()
        except Exception as error:
            self._troubles.tell(_NOT_TOLD, error, "error")
            return None
        self._troubles.over(_NOT_TOLD)
        return running

    async def _power_off(self, instance: str) -> None:
        try:
            await self._context.driver.power_off(instance)
        except Exception as error:
            self._troubles.tell(_NOT_STOPPED, error, "error")

    async def _forget(self, instances: Set[str]) -> None:
        """Forget guests that were stopped: they run again, or the cell has ordered what becomes of them."""
        for instance in instances:
            del self.stopped[instance]
            self._stopped_at.pop(instance, None)
        await self._keep_stopped()

    async def _keep_stopped(self) -> None:
        try:
            await self._context.state.keep_fenced(dict(self.stopped))
            self._troubles.over(_NOT_KEPT)
        except StateUnusable as error:
            # To stop the guests is more urgent. The cell takes those for lost that it is not told of.
            self._troubles.tell(_NOT_KEPT, error, "error")

    async def _touch(self) -> None:
        if not self._times.guarded:
            return
        try:
            await self._context.watchdog.touch()
            self._troubles.over(_NOT_TOUCHED)
        except OSError as error:
            self._troubles.tell(_NOT_TOUCHED, error, "error")

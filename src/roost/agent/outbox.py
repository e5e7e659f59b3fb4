"""The results of a host's work on their way to its cell: which poll carries which of them."""

from typing import NamedTuple

from roost.agent.agent_context import AgentContext
from roost.agent.protocol.questions import Poll
from roost.agent.protocol.types import Destroyed, PowerResult
from roost.agent.workload import AgentWorkload
from roost.model.instance import BuildResult


class OutboxContents(NamedTuple):
    """The results that a poll carries, as the parts of `Poll` of these names."""

    results: tuple[BuildResult, ...]
    destroyed: tuple[Destroyed, ...]
    powered: tuple[PowerResult, ...]


class Outbox:
    """Chooses the results that each poll of a host carries.

    The poll that waits for orders carries the results that exist when it is sent. So it is held back until
    the last orders are done, if that does not take long. A result that comes while it waits is sent at once,
    by a poll of its own. A result stays until a poll that carried it is answered, see
    `UnstoredResults`.

    ``topic``: woken when an order is done. ``seconds``: the longest time for which the waiting poll is held
    back.
    """

    def __init__(self, context: AgentContext, work: AgentWorkload, topic: str, seconds: float) -> None:
        self._context = context
        self._work = work
        self._done = context.listen(topic)
        self._seconds = seconds
        self._begun: set[str] = set()
        self._waiting: Poll | None = None
        self._is_gathering = False

    @property
    def is_pressing(self) -> bool:
        """True if a result is to be sent beside the poll that waits."""
        return not self._is_gathering and any(self.contents(waits=False))

    def contents(self, *, waits: bool) -> OutboxContents:
        """Return the results that a poll carries.

        ``waits``: the poll is the one that waits for orders. Another one carries what that one does not.
        """
        unstored = self._work.unstored
        waiting = None if waits else self._waiting
        if waiting is None:
            return OutboxContents(
                tuple(unstored.builds.values()),
                tuple(unstored.destroyed.values()),
                tuple(unstored.powered.values()),
            )
        brought = {(each.instance, each.attempt) for each in waiting.results}
        gone = {(each.instance, each.attempt) for each in waiting.destroyed}
        return OutboxContents(
            tuple(each for key, each in unstored.builds.items() if key not in brought),
            tuple(each for key, each in unstored.destroyed.items() if key not in gone),
            # A guest may have been started again since the poll that waits told that it was stopped.
            tuple(each for each in unstored.powered.values() if each not in waiting.powered),
        )

    def waits(self, poll: Poll | None) -> None:
        """Set the poll that waits for orders now; None: no poll waits."""
        self._waiting = poll

    def begins(self, instance: str) -> None:
        """Note that the answer to the waiting poll brought an order for an instance."""
        self._begun.add(instance)

    async def gather(self) -> None:
        """Wait until the last orders are done, unless orders take longer than the limit on this host."""
        begun, self._begun = self._begun, set()
        if self._work.took > self._seconds:
            return
        until = self._context.monotonic() + self._seconds
        self._is_gathering = True
        while not begun.isdisjoint(self._work.busy):
            left = until - self._context.monotonic()
            if left <= 0:
                break
            await self._done.wait(left)
        self._is_gathering = False

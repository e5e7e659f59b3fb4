"""The results of a host's work on their way to its cell: which poll carries which of them."""

from roost.agent.agent_context import AgentContext
from roost.agent.protocol.questions import Poll
from roost.agent.protocol.types import Destroyed
from roost.agent.workload import AgentWorkload
from roost.model.instance import BuildResult


class Outbox:
    """Chooses the results that each poll of a host carries.

    The poll that waits for orders carries the results that exist when it is sent. So it is held back until
    the last orders are done, if that does not take long. A result that comes while it waits is sent at once,
    by a poll of its own. A result stays until a poll that carried it is answered, see
    `AgentWorkload.acknowledged`.

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

    def contents(self, *, waits: bool) -> tuple[tuple[BuildResult, ...], tuple[Destroyed, ...]]:
        """Return the results and destructions that a poll carries.

        ``waits``: the poll is the one that waits for orders. Another one carries what that one does not.
        """
        results, destroyed = self._work.results, self._work.destroyed
        if waits or self._waiting is None:
            return tuple(results.values()), tuple(destroyed.values())
        brought = {(each.instance, each.attempt) for each in self._waiting.results}
        gone = {(each.instance, each.attempt) for each in self._waiting.destroyed}
        return (
            tuple(each for key, each in results.items() if key not in brought),
            tuple(each for key, each in destroyed.items() if key not in gone),
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

"""Which poll of a host brings which results of its work."""

from roost.agent.protocol.questions import Poll
from roost.agent.protocol.types import Destroyed
from roost.agent.workload import Workload
from roost.machine import Await, Machine, Monotonic
from roost.model.instance import BuildResult


class Outbox:
    """The results of a host's work on their way to its cell.

    The poll that waits for orders brings what is there when it is sent. So it is sent only when what was
    ordered last is done, if that is quickly done. What is done while it waits is sent at once, by a poll of
    its own. A result stays until a poll that brought it is answered, see `Workload.acknowledged`.

    ``topic``: woken when something is done. ``seconds``: how long the poll that waits is kept back at most.
    """

    def __init__(self, work: Workload, topic: str, seconds: float) -> None:
        self._work = work
        self._topic = topic
        self._seconds = seconds
        self._begun: set[str] = set()
        self._waiting: Poll | None = None
        self._is_gathering = False

    @property
    def is_pressing(self) -> bool:
        """Whether there is something to send beside the poll that waits."""
        return not self._is_gathering and any(self.contents(waits=False))

    def contents(self, *, waits: bool) -> tuple[tuple[BuildResult, ...], tuple[Destroyed, ...]]:
        """What a poll brings. ``waits``: it is the one that waits for orders; another one brings what that
        one has not."""
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
        """This poll waits for orders now; None: none does."""
        self._waiting = poll

    def begins(self, instance: str) -> None:
        """An order for an instance has come with the answer to the poll that waited."""
        self._begun.add(instance)

    def gather(self) -> Machine[None]:
        """Wait until what has come last is done, unless such things take longer here."""
        begun, self._begun = self._begun, set()
        if self._work.took > self._seconds:
            return
        until = (yield from Monotonic().do()) + self._seconds
        self._is_gathering = True
        while not begun.isdisjoint(self._work.busy):
            left = until - (yield from Monotonic().do())
            if left <= 0:
                break
            yield from Await(self._topic, left).do()
        self._is_gathering = False

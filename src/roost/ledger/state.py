"""What a command sees and changes."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

import msgspec

from roost.fleet import Fleet
from roost.model.allocation import Allocations, Consumer
from roost.model.change import AllocationsChanged, Change, inverse

T_co = TypeVar("T_co", covariant=True)


class Held(msgspec.Struct, frozen=True):
    """A consumer and what it holds."""

    consumer: Consumer
    allocations: Allocations


class State:
    """The fleet at head with the batch's changes so far, and the consumers that its commands named.

    Changes are tentative until the commit is durable.
    """

    def __init__(self, fleet: Fleet, held: dict[str, Held], now: float) -> None:
        self.fleet = fleet
        self.now = now
        self.changes: list[Change] = []
        self._held = held
        self._named: frozenset[str] = frozenset()

    def name(self, consumers: Iterable[str]) -> None:
        """Say which consumers the command that runs next may ask for."""
        self._named = frozenset(consumers)

    def held(self, consumer: str) -> Held | None:
        """A consumer and what it holds, None if there is no such consumer.

        Only consumers that the command named may be asked for: others have not been read.
        """
        if consumer not in self._named:
            raise LookupError(f"the command did not name consumer {consumer}")
        return self._held.get(consumer)

    def apply(self, change: Change) -> None:
        """Make a change, tentatively."""
        self.fleet.apply(change)
        self._remember(change)
        self.changes.append(change)

    def take_back(self, mark: int) -> None:
        """Undo all changes after the first ``mark`` ones."""
        while len(self.changes) > mark:
            change = inverse(self.changes.pop())
            self.fleet.apply(change)
            self._remember(change)

    def _remember(self, change: Change) -> None:
        if isinstance(change, AllocationsChanged):
            if change.after is None:
                self._held.pop(change.consumer, None)
            else:
                self._held[change.consumer] = Held(change.after, change.holds)


class Command(Protocol[T_co]):
    """A request to change something.

    One that is refused if any of its consumers is there already may say so: see `wants_new`.
    """

    def consumers(self) -> Iterable[str]:
        """The consumers that `run` will ask the state for."""

    def run(self, state: State) -> T_co:
        """Validate against ``state`` and apply changes to it. Raise to refuse: nothing is changed then.

        May be run again, on a newer state, if another writer was first.
        """


def wants_new(command: Command[object]) -> bool:
    """Whether a command is refused if any of its consumers is there already: it has an attribute
    ``wants_new`` that is true then."""
    return getattr(command, "wants_new", False) is True

"""Commands, and the state that a command reads and changes."""

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

import msgspec

from roost.fleet import Fleet
from roost.model.allocation import Allocations, Consumer
from roost.model.change import AllocationsChanged, Change, inverse

T_co = TypeVar("T_co", covariant=True)


class Held(msgspec.Struct, frozen=True):
    """A consumer and its allocations."""

    consumer: Consumer
    allocations: Allocations


class Moment(NamedTuple):
    """A state on which a command ran: ledger ``version``, plus ``position`` changes of the next commit."""

    version: int
    position: int


class State:
    """The fleet at the head with the batch's changes so far, and the consumers that its commands named.

    Changes are tentative until the commit is durable. ``now``: time of the commit, seconds since the epoch.
    """

    def __init__(self, fleet: Fleet, held: dict[str, Held], now: float) -> None:
        self.fleet = fleet
        self.now = now
        self.changes: list[Change] = []
        self._held = held
        self._named: frozenset[str] = frozenset()

    def name(self, consumers: Iterable[str]) -> None:
        """Declare the consumers that the next command may read or write."""
        self._named = frozenset(consumers)

    @property
    def moment(self) -> Moment:
        """The present state, as a point in the history."""
        return Moment(self.fleet.version, len(self.changes))

    def held(self, consumer: str) -> Held | None:
        """Return a consumer and its allocations; None if the consumer does not exist.

        Raises: `LookupError` for a consumer that the command did not name, because it may not have been read.
        """
        if consumer not in self._named:
            raise LookupError(f"the command did not name consumer {consumer}")
        return self._held.get(consumer)

    def apply(self, change: Change) -> None:
        """Apply a change, tentatively.

        Raises: `roost.fleet.FleetError` if the change contradicts the fleet.
        """
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


class Command(msgspec.Struct, Generic[T_co], frozen=True):
    """A request to change something: a frozen value with everything that the client asked for.

    Subclasses implement `run`. A command that reads or writes consumers also overrides `consumers`; one that
    only creates consumers also overrides `requires_new_consumers`.
    """

    def consumers(self) -> Iterable[str]:
        """Return the uuids of the consumers that `run` reads or writes. The ledger loads no others."""
        return ()

    @property
    def requires_new_consumers(self) -> bool:
        """True if `run` refuses the command whenever one of its consumers exists.

        The ledger may draft a batch of such commands without a head check, because the database refuses a
        second consumer with the same uuid.
        """
        return False

    def run(self, state: State) -> T_co:
        """Validate the command against ``state`` and apply its changes to it.

        The ledger runs a command again, on a newer state, if another writer took the sequence number.

        Raises: any exception to refuse the command. The ledger undoes the changes that it applied.
        """
        raise NotImplementedError

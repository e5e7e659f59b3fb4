"""The work that one conductor owns in a cell, and the pauses after work that failed."""

from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from roost.conductor.backoff import Backoff
from roost.scheduler.selection.claim_result import is_outage, result_of
from roost.state.leases import Tenure


class Ownable(Protocol):
    """A piece of work: an instance, or a move."""

    @property
    def uuid(self) -> str:
        """The key of the work."""

    @property
    def state(self) -> str:
        """The state that says which work is wanted."""


W = TypeVar("W", bound=Ownable)


class _Postponed(NamedTuple):
    """Work that failed: the number of failures, the number of those by a fault that is no outage,
    when it is due again (monotonic seconds), and the reason of the last failure."""

    failures: int
    faults: int
    due: float
    reason: str


class OwnedWork(Generic[W]):
    """The work of one kind in one cell that one conductor owns.

    Its coroutines share it; they run one after the other. ``backoff``: how often work is tried, and after
    which pauses.
    """

    def __init__(self, cell: str, tenure: Tenure, backoff: Backoff) -> None:
        self.cell = cell
        self.database = f"cell/{cell}"
        self.tenure = tenure
        self.backoff = backoff
        self._holder = ""
        self._owned: dict[str, W] = {}
        self._postponed: dict[str, _Postponed] = {}

    def own(self, holder: str, taken: Sequence[W]) -> None:
        """Add work taken under a nonce. What was taken under another nonce is not owned any more."""
        if holder != self._holder:
            self._holder = holder
            self._owned.clear()
            self._postponed.clear()
        self._owned.update((each.uuid, each) for each in taken)

    @property
    def owned(self) -> int:
        """The number of owned pieces of work."""
        return len(self._owned)

    def owns(self, uuid: str) -> bool:
        """Return whether a piece of work is known to be owned."""
        return uuid in self._owned

    def in_state(self, state: str) -> list[W]:
        """Return the owned work that was in a state when it was last read."""
        return [each for each in self._owned.values() if each.state == state]

    def drop(self, uuids: Sequence[str]) -> None:
        """Drop work that is finished, or that others own."""
        for uuid in uuids:
            self._owned.pop(uuid, None)
            self._postponed.pop(uuid, None)

    def postpone(self, uuid: str, now: float, error: Exception) -> int:
        """Postpone work that failed; returns how often it has failed in a row."""
        failures, faults, _, _ = self._postponed.get(uuid, _Postponed(0, 0, 0.0, ""))
        failures += 1
        faults += not is_outage(error)
        due = now + self.backoff.pause(failures)
        self._postponed[uuid] = _Postponed(failures, faults, due, result_of(error).reason or "")
        return failures

    def defer(self, uuid: str, due: float) -> None:
        """Postpone work that cannot go on yet until ``due`` of the monotonic clock. That is no failure."""
        known = self._postponed.get(uuid, _Postponed(0, 0, 0.0, ""))
        self._postponed[uuid] = known._replace(due=due)

    def is_due(self, uuid: str, now: float) -> bool:
        """Return whether work is due at ``now`` of the monotonic clock."""
        return uuid not in self._postponed or self._postponed[uuid].due <= now

    def was_postponed(self, uuid: str) -> bool:
        """Return whether work failed before."""
        return uuid in self._postponed

    def hopeless(self, uuid: str) -> str | None:
        """Return why work that was tried too often is given up; None if it is not."""
        postponed = self._postponed.get(uuid)
        if postponed is None or not self.backoff.exhausted(postponed.faults):
            return None
        return postponed.reason

"""The shelf of an instance in its history: the shelving or unshelving that is under way."""

from roost.conductor.history.actions import asked, finish
from roost.conductor.history.types import HistoryEvent, InstanceAction
from roost.model.instance import Transition


class ShelfActions:
    """The shelvings and unshelvings of one instance, one at a time. ``action``: the one that is under way."""

    def __init__(self) -> None:
        self.action: InstanceAction | None = None

    def begin(self, kind: str, new: Transition, *events: HistoryEvent) -> InstanceAction:
        """Return a shelving or unshelving that is under way from now on, with its first events."""
        self.action = asked(kind, new.by, new.at)
        self.action.events.extend(events)
        return self.action

    def offload(self, new: Transition, free: HistoryEvent) -> None:
        """End the event of a host that keeps nothing more of a shelved instance; its claim is freed next."""
        if self.action is not None:
            event = self.action.events[-1]
            event.finished_at, event.result, event.reason = new.at, "success", new.reason
            self.action.events.append(free)

    def shelved(self, at: float, reason: str | None) -> None:
        """End a shelving, or for a ``reason`` an unshelving for which no host was found."""
        if self.action is not None and self.action.kind == "unshelve":
            self._end(at, "error", reason)
        else:
            self._end(at, "success")

    def unshelved(self, at: float) -> None:
        """End an unshelving: the guest runs."""
        self._end(at, "success")

    def leave(self, at: float) -> None:
        """End what is under way, as the instance ends."""
        for event in () if self.action is None else self.action.events:
            if event.result is None:
                event.finished_at, event.result = at, "abandoned"
        self._end(at, "abandoned")

    def _end(self, at: float, result: str, reason: str | None = None) -> None:
        action, self.action = self.action, None
        if action is not None:
            finish(action, at, result, reason)

"""The session of a host's agent: the states of an agent as a table, and the knowledge of one session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from roost.agent.protocol.types import HistoryPosition, SessionKey

OTHER_DATABASE = "the cell's database is another one, or was restored from a backup"
TAKEN_BACK = "the cell's database was taken back to an earlier state"
EMPTY_LIST = "the cell's database knows no guest of this host, but there are some"
"""Reasons why an agent carries out no orders."""


class SessionState(Enum):
    """The states of an agent. Held: it carries out no orders until an operator accepts the cell's state."""

    CLOSED = auto()
    """It has no session, and opens one."""
    CLOSED_HELD = auto()
    """It has no session, opens one, and is held."""
    SERVING = auto()
    """It has a session, and carries out orders."""
    HELD = auto()
    """It has a session, polls, and is held."""

    @property
    def has_session(self) -> bool:
        """True if polls and reports are sent."""
        return self in (SessionState.SERVING, SessionState.HELD)

    @property
    def is_held(self) -> bool:
        """True if no order is carried out."""
        return self in (SessionState.CLOSED_HELD, SessionState.HELD)


class SessionEvent(Enum):
    """The events that change the state of an agent."""

    OPENED = auto()
    """The cell has granted a session, and the driver has taken up the guests."""
    ENDED = auto()
    """The cell does not know the session, or a new one is to begin."""
    DOUBTED = auto()
    """The cell's database cannot be trusted: it is another one, was taken back, or lacks guests."""
    ACCEPTED = auto()
    """An operator has accepted the state of the cell's database."""


TRANSITIONS: Mapping[SessionState, Mapping[SessionEvent, SessionState]] = {
    SessionState.CLOSED: {
        SessionEvent.OPENED: SessionState.SERVING,
        SessionEvent.ENDED: SessionState.CLOSED,
        SessionEvent.DOUBTED: SessionState.CLOSED_HELD,
        SessionEvent.ACCEPTED: SessionState.CLOSED,
    },
    SessionState.CLOSED_HELD: {
        SessionEvent.OPENED: SessionState.HELD,
        SessionEvent.ENDED: SessionState.CLOSED_HELD,
        SessionEvent.DOUBTED: SessionState.CLOSED_HELD,
        SessionEvent.ACCEPTED: SessionState.CLOSED,
    },
    SessionState.SERVING: {
        SessionEvent.OPENED: SessionState.SERVING,
        SessionEvent.ENDED: SessionState.CLOSED,
        SessionEvent.DOUBTED: SessionState.HELD,
        SessionEvent.ACCEPTED: SessionState.SERVING,
    },
    SessionState.HELD: {
        SessionEvent.OPENED: SessionState.HELD,
        SessionEvent.ENDED: SessionState.CLOSED_HELD,
        SessionEvent.DOUBTED: SessionState.HELD,
        SessionEvent.ACCEPTED: SessionState.SERVING,
    },
}
"""The state after each event. Two polls are under way at times, so any event may come in any state."""


@dataclass(slots=True, eq=False)
class HostSession:
    """The knowledge of an agent in one session.

    ``node_of``: the node of each instance, for hosts with several. ``wait``: the longest wait of the next
    poll in seconds. ``wants_guests``: the cell wants the list of guests. ``is_disabled``: an operator has
    disabled the host; None if the cell has not said yet. ``counter``: the number of the last poll;
    ``answered``: of the last one with an answer that counts; ``counted``: of the last one that the cell's
    database has. ``sent``: those that are under way.
    """

    key: SessionKey
    node_of: dict[str, str]
    wait: float = 0.0
    wants_guests: bool = False
    is_disabled: bool | None = None
    counter: int = 0
    answered: int = 0
    counted: int = 0
    sent: set[int] = field(default_factory=set)


def why_doubted(before: HistoryPosition | None, now: HistoryPosition) -> str | None:
    """Return why a database cannot be trusted after a position that was seen before; None if it can."""
    if before is None:
        return None
    if (before.database, before.incarnation) != (now.database, now.incarnation):
        return OTHER_DATABASE
    return TAKEN_BACK if now < before else None

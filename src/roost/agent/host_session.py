"""The sessions of a host's agent: its states as a table, and each session from its opening to its end."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

import msgspec

from roost.agent.agent_context import AgentContext
from roost.agent.drivers import BUILT
from roost.agent.node_reports import read_guests
from roost.agent.options import AgentTimes
from roost.agent.persistent_state import KeptSession
from roost.agent.protocol.errors import AgentProtocolError
from roost.agent.protocol.questions import Opening
from roost.agent.protocol.types import HistoryPosition, Opened, SessionKey
from roost.agent.troubles import Troubles
from roost.model.fence import Fence
from roost.model.instance import LOST, REBUILDS, Instance
from roost.model.service_version import SERVICE_VERSION

OTHER_DATABASE = "the cell's database is another one, or was restored from a backup"
TAKEN_BACK = "the cell's database was taken back to an earlier state"
EMPTY_LIST = "the cell's database knows no guest of this host, but there are some"
"""Reasons why an agent carries out no orders."""

NOT_KEPT = "the state of a host cannot be kept"

_NO_SESSION = "no session can be opened"
_NOT_RECOVERED = "the driver cannot take up the guests of a host"


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


def taken_up(expected: Collection[Instance]) -> tuple[Instance, ...]:
    """Return which of a host's instances its driver is told after a start of the agent.

    Those that move, are rebuilt or are lost keep their ports, whether or not they have a guest: ports that
    are made for an instance are deleted with their addresses when they are released.
    """
    kept = (*BUILT, LOST, *REBUILDS)
    return tuple(each for each in expected if each.state in kept or each.move is not None)


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


class HostSessions:
    """Opens the sessions of a host's agent, one after another, and keeps what the next one needs.

    ``last``: the last session, which is open in the states that have one. ``kept``: what the state directory
    has, and a newer position of the cell's database. ``kept_at``: monotonic seconds of the last write.
    ``fence``: the cell is told of it; None: the host has none.
    """

    def __init__(
        self,
        context: AgentContext,
        host: str,
        times: AgentTimes,
        troubles: Troubles,
        fence: Fence | None = None,
    ) -> None:
        self._context = context
        self._fence = fence
        self._host = host
        self._times = times
        self._troubles = troubles
        self._state = SessionState.CLOSED
        self.last: HostSession | None = None
        self.kept = KeptSession()
        self.kept_at = 0.0
        self._reason: str | None = None
        self._recovered = False

    @property
    def current(self) -> HostSession | None:
        """The open session; None if there is none."""
        return self.last if self._state.has_session else None

    @property
    def held(self) -> str | None:
        """The reason why the agent carries out no orders; None if it does."""
        return self._reason if self._state.is_held else None

    async def load(self) -> None:
        """Load what the last agent of the host has kept. Raises `StateUnusable`."""
        self.kept = await self._context.state.load_session()
        if self.kept.held is not None:
            self._doubt(self.kept.held)

    async def open(self) -> None:
        """Open a session; repeat it until the cell grants one."""
        nonce = self._context.draw()
        previous = self.kept.nonces
        # Kept before it is used, so that the next start of this agent gets the session at once.
        await self.keep(nonces=(nonce, *previous)[:3])
        opening = Opening(
            host=self._host,
            nonce=nonce,
            previous=previous,
            service_version=SERVICE_VERSION,
            held=self.held,
            fence=self._fence,
        )
        failures = 0
        while True:
            try:
                opened = await self._context.cell.ask(opening)
                break
            except AgentProtocolError as error:
                failures += 1
                self._troubles.tell(_NO_SESSION, error)
                await self._context.sleep(self._times.pause(failures))
        self._troubles.over(_NO_SESSION)
        reason = None if self.kept.accepted else await self._why_doubted(opened)
        if reason is not None and self.held is None:
            await self.hold(reason)
        position = msgspec.structs.replace(opened.position, epoch=opened.session.epoch, counter=0)
        if self.held is None:
            await self.keep(position=position, accepted=False)
        if not self._recovered:
            await self._recover(taken_up(opened.expected))
        nodes = {each.uuid: each.node for each in opened.expected if each.node is not None}
        self.last = HostSession(opened.session, nodes)
        self._on(SessionEvent.OPENED)
        values = {"host": self._host, "cell": opened.cell}
        self._context.log("the session of a host is open", values, "debug")

    def end(self, session: HostSession) -> None:
        """Note that the cell does not know a session, unless another one is open meanwhile."""
        if self.current is session:
            self._on(SessionEvent.ENDED)

    async def hold(self, reason: str) -> None:
        """Carry out no orders until an operator accepts the cell's state. Raises `StateUnusable`."""
        self._doubt(reason)
        await self.keep(held=reason)
        values = {"host": self._host, "reason": reason}
        self._context.log("the agent carries out no orders and waits for an operator", values, "error")

    async def accept(self) -> None:
        """Begin a new session, as an operator has accepted the state of the cell's database."""
        values = {"host": self._host, "reason": self.held}
        self._context.log("an operator has accepted the state of the cell", values)
        self._on(SessionEvent.ACCEPTED)
        await self.keep(held=None, accepted=True, position=None)
        self._on(SessionEvent.ENDED)

    async def take_position(self, session: HostSession, now: HistoryPosition) -> None:
        """Take the position of the cell's database in an answer; be held if it is another database."""
        if self.held is None and why_doubted(self.kept.position, now) == OTHER_DATABASE:
            await self.hold(OTHER_DATABASE)
        if self.held is None:
            position = HistoryPosition(
                now.database, now.incarnation, epoch=session.key.epoch, counter=session.counted
            )
            self.kept = msgspec.structs.replace(self.kept, position=position)

    async def keep(self, **changes: object) -> None:
        """Write what the next session needs, with these changes of `KeptSession`. Raises `StateUnusable`."""
        # Taken over only once it is written: the nonce of the session stays among the last ones.
        kept = msgspec.structs.replace(self.kept, **{"held": self.held, **changes})
        await self._context.state.keep_session(kept)
        self.kept = kept
        self.kept_at = self._context.monotonic()
        self._troubles.over(NOT_KEPT)

    def _on(self, event: SessionEvent) -> None:
        self._state = TRANSITIONS[self._state][event]

    def _doubt(self, reason: str) -> None:
        self._reason = reason
        self._on(SessionEvent.DOUBTED)

    async def _recover(self, there: tuple[Instance, ...]) -> None:
        """Have the driver take up the running guests of the host, however long it takes.

        Until then no order is taken, and the host counts as down.
        """
        failures = 0
        while not self._recovered:
            try:
                await self._context.driver.recover(there)
                self._recovered = True
                self._troubles.over(_NOT_RECOVERED)
            except Exception as error:
                failures += 1
                self._troubles.tell(_NOT_RECOVERED, error, "error")
                await self._context.sleep(self._times.pause(failures))

    async def _why_doubted(self, opened: Opened) -> str | None:
        """Return why the cell's database cannot be trusted; None if it can."""
        reason = why_doubted(self.kept.position, opened.position)
        if reason is not None:
            return reason
        if not opened.expected and not opened.orders:
            guests = await read_guests(self._context, self._troubles)
            if guests:
                return EMPTY_LIST
        return None


def why_doubted(before: HistoryPosition | None, now: HistoryPosition) -> str | None:
    """Return why a database cannot be trusted after a position that was seen before; None if it can."""
    if before is None:
        return None
    if (before.database, before.incarnation) != (now.database, now.incarnation):
        return OTHER_DATABASE
    return TAKEN_BACK if now < before else None

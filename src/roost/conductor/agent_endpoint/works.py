"""The transactions of an endpoint for agents besides polls, one class for each."""

from collections.abc import Collection, Sequence

import msgspec
from sqlalchemy.engine import Connection

from roost.agent.protocol.types import SessionKey
from roost.conductor.agent_endpoint.polls import hosts_of
from roost.conductor.agent_endpoint.sessions import SessionGone, TakenBack, counters_of, judged
from roost.state.cell_database.building import AttemptKey, ConfirmAttempt
from roost.state.cell_database.host_tokens import IssueToken
from roost.storage import DatabaseIdentity, read_identity


class ConfirmBuild(msgspec.Struct, frozen=True):
    """Confirm a build: answers whether the host is to start the guest that it has prepared.

    ``counted``: the last poll of the session that the agent knows to be counted. Without that check, an agent
    could confirm a build by a database that was taken back, after the instance has moved to another host.
    """

    session: SessionKey
    key: AttemptKey
    at: float
    counted: int = 0

    @property
    def keys(self) -> Collection[str]:
        return (self.key.instance,)

    def __call__(self, connection: Connection) -> bool | SessionGone | TakenBack:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(
        cls, connection: Connection, works: "Sequence[ConfirmBuild]"
    ) -> list[bool | SessionGone | TakenBack]:
        counters = counters_of(connection, [work.session for work in works], lock=True)
        known = [judged(counter, work.counted) for work, counter in zip(works, counters, strict=True)]
        asked = [
            ConfirmAttempt(work.key, work.session.host, work.at)
            for work, counter in zip(works, known, strict=True)
            if isinstance(counter, int)
        ]
        wanted = iter(ConfirmAttempt.together(connection, asked) if asked else ())
        return [next(wanted) if isinstance(each, int) else each for each in known]


class ReadIdentity(msgspec.Struct, frozen=True):
    """Read the identity of the cell's database."""

    def __call__(self, connection: Connection) -> DatabaseIdentity:
        return read_identity(connection)


class ReachesRoot(msgspec.Struct, frozen=True):
    """Answers whether a root provider is a node of a session's host; None if the cell knows no such node."""

    session: SessionKey
    root: str

    def __call__(self, connection: Connection) -> bool | SessionGone | None:
        if counters_of(connection, [self.session]) == [None]:
            return SessionGone()
        host = hosts_of(connection, [self.root]).get(self.root)
        return None if host is None else host == self.session.host


class RenewHostToken(msgspec.Struct, frozen=True):
    """Make a new token of a session's host valid. Answers False if the agent does not hold the session."""

    session: SessionKey
    digest: str
    at: float

    def __call__(self, connection: Connection) -> bool:
        if counters_of(connection, [self.session], lock=True) == [None]:
            return False
        IssueToken(host=self.session.host, digest=self.digest, at=self.at)(connection)
        return True

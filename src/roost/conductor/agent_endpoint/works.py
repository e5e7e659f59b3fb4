"""The transactions of an endpoint for agents besides polls."""

from collections.abc import Collection, Sequence

import msgspec
from sqlalchemy.engine import Connection

from roost.agent.protocol.types import SessionKey
from roost.conductor.agent_endpoint.polls import hosts_of
from roost.conductor.agent_endpoint.sessions import SessionGone, TakenBack, counters_of, judged
from roost.model.instance import AttemptKey
from roost.state.cell_database.building import ConfirmAttempt
from roost.state.cell_database.host_admission import issue_token
from roost.storage import transaction


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


@transaction
def reaches_root(connection: Connection, session: SessionKey, root: str) -> bool | SessionGone | None:
    """Return whether a root provider is a node of a session's host; None if the cell knows no such node."""
    if counters_of(connection, [session]) == [None]:
        return SessionGone()
    host = hosts_of(connection, [root]).get(root)
    return None if host is None else host == session.host


@transaction
def renew_host_token(connection: Connection, session: SessionKey, digest: str, at: float) -> bool:
    """Make a new token of a session's host valid. Returns False if the agent does not hold the session."""
    if counters_of(connection, [session], lock=True) == [None]:
        return False
    issue_token(host=session.host, digest=digest, at=at)(connection)
    return True

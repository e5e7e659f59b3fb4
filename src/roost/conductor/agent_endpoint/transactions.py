"""The transactions of an endpoint in the cell's database: polls, confirmations of builds, tokens."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.agent.protocol.types import SessionKey
from roost.conductor.agent_endpoint.sessions import SessionGone, TakenBack, counters_of, judged
from roost.model.instance import (
    DESTROYED,
    OFFLOADED,
    POWERING_ON,
    AttemptKey,
    BuildResult,
    DestroyOrder,
    PowerResult,
)
from roost.model.node import NodeReport
from roost.model.record import Attempt
from roost.state.cell_database.building import ConfirmAttempt, ReportResults, state_after
from roost.state.cell_database.consumers import by_consumers
from roost.state.cell_database.deletions import note_destroyed
from roost.state.cell_database.disabled import HOST_IS_DISABLED
from roost.state.cell_database.fenced_guests import start_fenced
from roost.state.cell_database.guests import Compared, GuestsReported
from roost.state.cell_database.host_admission import issue_token
from roost.state.cell_database.host_work import HostWork, session_name, work_of_hosts
from roost.state.cell_database.move_changes import MOVE
from roost.state.cell_database.move_orders import work_by_moves
from roost.state.cell_database.move_reports import confirm_target, note_moves_destroyed, report_target
from roost.state.cell_database.nodes import keep_reports
from roost.state.cell_database.power import report_power
from roost.state.cell_database.reported import clean_results
from roost.state.cell_database.tables import leases, nodes
from roost.storage import in_batches, one_of, transaction


class PollStored(msgspec.Struct, frozen=True):
    """The result of a poll that was stored.

    ``before``: the counter before it. ``ended``: the ends of attempts for the records. ``is_reported``: the
    cell has a report of the host; None if that was not read. ``refused``: reported nodes that belong to
    another host. ``is_counted``: the session's counter is that of this poll now. ``is_disabled``: an operator
    has disabled the host; None if that was not read.
    """

    before: int
    work: HostWork
    ended: list[Attempt] = []
    compared: Compared | None = None
    is_reported: bool | None = None
    refused: frozenset[str] = frozenset()
    is_counted: bool = True
    is_disabled: bool | None = None
    restarted: list[str] = []


class PollLate(msgspec.Struct, frozen=True):
    """A later poll of the session has arrived before this one."""


NotStored = SessionGone | TakenBack | PollLate
"""Why a poll is not stored."""


class StorePoll(msgspec.Struct, frozen=True, kw_only=True):
    """Store a poll, if the agent holds the session, its last poll is counted, and no later one has arrived.

    ``counted``: the last poll of the session that the agent knows to be counted. ``fenced``: the attempts of
    guests that the host has stopped by its fence. ``wants_orders``: read the work of the host. ``is_sign``:
    read whether the cell has a report of the host, and whether it is disabled.
    """

    session: SessionKey
    counter: int
    counted: int = 0
    results: tuple[BuildResult, ...]
    destroyed: tuple[DestroyOrder, ...]
    powered: tuple[PowerResult, ...] = ()
    reports: tuple[NodeReport, ...]
    guests: Mapping[str, int] | None
    fenced: Mapping[str, int] = {}
    at: float
    cell: str
    wants_orders: bool = True
    is_sign: bool = True

    @property
    def enters(self) -> Collection[str]:
        entered = {state_after(result) for result in self.results}
        if self.destroyed:
            entered.update((DESTROYED, OFFLOADED))
        if self.powered or self.destroyed or any(_may_be_of_move(result) for result in self.results):
            entered.add(MOVE)
        if self.fenced:
            entered.update((POWERING_ON, MOVE))
        return entered

    @property
    def keys(self) -> Collection[str]:
        return (self.session.host,)

    def __call__(self, connection: Connection) -> PollStored | NotStored:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[StorePoll]") -> list[PollStored | NotStored]:
        counters = counters_of(connection, [work.session for work in works], lock=True)
        before = [work.judged(counter) for work, counter in zip(works, counters, strict=True)]
        current = [work for work, judged in zip(works, before, strict=True) if isinstance(judged, int)]
        stored = iter(_store(connection, current) if current else ())
        return [
            msgspec.structs.replace(next(stored), before=judged) if isinstance(judged, int) else judged
            for judged in before
        ]

    def judged(self, counter: int | None) -> int | NotStored:
        """Return the counter of the session before this poll, or why the poll is not stored."""
        known = judged(counter, self.counted)
        return PollLate() if isinstance(known, int) and known >= self.counter else known


def _store(connection: Connection, polls: Sequence[StorePoll]) -> list[PollStored]:
    """Store polls whose leases are locked, as if one after the other."""
    stored: list[PollStored] = []
    while polls:
        refused = _of_others(connection, polls)
        # A node of another host may be free once the polls before have replaced it.
        doubtful = (n for n, nodes in enumerate(refused) if nodes and any(p.reports for p in polls[:n]))
        cut = next(doubtful, len(polls))
        stored += _store_together(connection, polls[:cut], refused[:cut])
        polls = polls[cut:]
    return stored


def _store_together(
    connection: Connection, polls: Sequence[StorePoll], refused: Sequence[frozenset[str]]
) -> list[PollStored]:
    counted = [{"of_name": session_name(p.session.host), "new_counter": p.counter} for p in polls]
    connection.execute(_COUNT, counted)
    at = max(poll.at for poll in polls)
    ended: list[list[Attempt]] = [[] for _ in polls]
    if any(poll.results for poll in polls):
        reports = [ReportResults(poll.results, poll.at, poll.cell) for poll in polls]
        ended = ReportResults.together(connection, reports)
        of_moves = [
            (result, of_it)
            for poll, of_it in zip(polls, ended, strict=True)
            for result in clean_results(poll.results)
            if _may_be_of_move(result)
        ]
        # Transactions that lock the same instances lock them in the same order.
        for result, of_it in sorted(of_moves, key=lambda each: each[0].instance):
            if (end := report_target(connection, result, at)) is not None:
                of_it.append(end)
    if destroyed := tuple(each for poll in polls for each in poll.destroyed):
        note_destroyed(destroyed, at)(connection)
        note_moves_destroyed(connection, destroyed, at)
    powered = [
        (each, poll.session.host, of_it)
        for poll, of_it in zip(polls, ended, strict=True)
        for each in poll.powered
    ]
    for report, host, of_it in sorted(powered, key=lambda each: each[0].instance):
        of_it += report_power(connection, host, (report,), at)
    # Before their absence is compared: they are not lost.
    fenced = {poll.session.host: poll.fenced for poll in polls if poll.fenced}
    restarted = start_fenced(connection, fenced, at) if fenced else {}
    kept = tuple(
        each
        for poll, others in zip(polls, refused, strict=True)
        for each in poll.reports
        if each.node not in others
    )
    if kept:
        # Milliseconds are unlike any number that the node has had before.
        keep_reports(by_consumers(connection, kept), first=max(int(at * 1000), 1))(connection)
    looked = [poll.session.host for poll in polls if poll.reports or poll.is_sign]
    reported = {
        host: bool(is_disabled)
        for some in in_batches(looked)
        for host, is_disabled in connection.execute(_REPORTED, {"hosts": some})
    }
    told = [
        GuestsReported(poll.session.host, poll.guests, poll.at) for poll in polls if poll.guests is not None
    ]
    compared = dict(
        zip([each.host for each in told], GuestsReported.together(connection, told), strict=True)
        if told
        else ()
    )
    wanting = tuple(poll.session.host for poll in polls if poll.wants_orders)
    work = work_of_hosts(wanting)(connection).by_host()
    for host, by_moves in work_by_moves(connection, wanting).items():
        work.setdefault(host, HostWork([], [])).moves.extend(by_moves)
    return [
        PollStored(
            before=0,
            work=work.get(poll.session.host) or HostWork([], []),
            ended=of_it,
            compared=compared.get(poll.session.host),
            is_reported=poll.session.host in reported if poll.reports or poll.is_sign else None,
            refused=others,
            is_disabled=reported.get(poll.session.host),
            restarted=restarted.get(poll.session.host, []),
        )
        for poll, of_it, others in zip(polls, ended, refused, strict=True)
    ]


def _of_others(connection: Connection, polls: Sequence[StorePoll]) -> list[frozenset[str]]:
    """Return for each poll the reported nodes that belong to another host."""
    hosts = hosts_of(connection, [report.node for poll in polls for report in poll.reports])
    return [
        frozenset(
            report.node
            for report in poll.reports
            # Of two hosts that report a new node at the same time the first one gets it.
            if hosts.setdefault(report.node, poll.session.host) != poll.session.host
        )
        for poll in polls
    ]


def hosts_of(connection: Connection, named: Iterable[str]) -> dict[str, str]:
    """Return the hosts of the nodes that the cell knows, by node."""
    return {
        node: host
        for some in in_batches(named)
        for node, host in connection.execute(_HOSTS_OF, {"nodes": some})
    }


_COUNT = (
    sa.update(leases)
    .where(leases.c.name == sa.bindparam("of_name"))
    .values(counter=sa.bindparam("new_counter"))
)
_REPORTED = sa.select(nodes.c.host, HOST_IS_DISABLED).where(one_of(nodes.c.host, "hosts")).distinct()
_HOSTS_OF = sa.select(nodes.c.node, nodes.c.host).where(one_of(nodes.c.node, "nodes"))


Confirmed = bool | None | SessionGone | TakenBack
"""The result of a confirmation; None: the host asks again later."""


def _may_be_of_move(result: BuildResult) -> bool:
    """Return whether a result may be that of a move's target: its attempt is never the first one."""
    return result.attempt > 1


class ConfirmBuild(msgspec.Struct, frozen=True):
    """Confirm a build: answers whether the host is to start the guest that it has prepared; None: not yet.

    ``counted``: the last poll of the session that the agent knows to be counted. Without that check, an agent
    could confirm a build by a database that was taken back, after the instance has moved to another host.
    """

    session: SessionKey
    key: AttemptKey
    at: float
    counted: int = 0

    @property
    def enters(self) -> Collection[str]:
        return (MOVE,) if self.key.attempt > 1 else ()

    @property
    def keys(self) -> Collection[str]:
        return (self.key.instance,)

    def __call__(self, connection: Connection) -> Confirmed:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[ConfirmBuild]") -> list[Confirmed]:
        counters = counters_of(connection, [work.session for work in works], lock=True)
        known = [judged(counter, work.counted) for work, counter in zip(works, counters, strict=True)]
        asked = [
            ConfirmAttempt(work.key, work.session.host, work.at)
            for work, counter in zip(works, known, strict=True)
            if isinstance(counter, int)
        ]
        wanted = ConfirmAttempt.together(connection, asked) if asked else []
        answers = iter(
            yes or (each.key.attempt > 1 and confirm_target(connection, each.key, each.host, each.at))
            for each, yes in zip(asked, wanted, strict=True)
        )
        return [next(answers) if isinstance(each, int) else each for each in known]


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

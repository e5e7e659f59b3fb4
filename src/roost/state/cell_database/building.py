"""Builds: confirmations and results of hosts, time limits, and the attempts that have ended.

Each write names the attempt that it concerns, and changes nothing if the instance is beyond it. So a late,
repeated or false report has no effect, nor has a write of a conductor whose view is outdated.

The present attempt of an instance is in the instance's row. When the attempt ends, its end goes to the
records (`roost.model.record.Attempt`), and to a row of the table `build_attempts` unless the guest runs.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model import record
from roost.model.instance import (
    ABANDONED,
    ACTIVE,
    ASSIGNED,
    FAILED,
    IN_PLACE,
    LOST,
    REBUILDING,
    REBUILDS,
    STARTING,
    STOPPED,
    AttemptKey,
    BuildAttempt,
    BuildResult,
    DestroyOrder,
    Requester,
)
from roost.model.record import BUILT, Attempt
from roost.model.spec import Selection
from roost.model.text import clean_text
from roost.state.cell_database.history import NEW_LINE, line, with_line
from roost.state.cell_database.host_work import give_orders
from roost.state.cell_database.node_claims import NO_ROOM, without_room
from roost.state.cell_database.reported import clean_results
from roost.state.cell_database.rows import (
    INSTANCES,
    PRESENT,
    Row,
    attempt_of,
    attempt_row,
    instance_of,
    selection_of,
    selection_text,
    shelf_of,
)
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import build_attempts, instances
from roost.storage import entering, in_batches, one_of, one_of_constants, transaction

UNDER_WAY = (ASSIGNED, STARTING)
"""States in which the present attempt has not ended."""


class ConfirmAttempt(msgspec.Struct, frozen=True):
    """Confirm an attempt: answers whether ``host`` is to start the guest that it has prepared.

    After a yes no time limit ends the attempt, so no other host gets the instance. A host that asks again,
    because the answer was lost, gets the same answer. A rebuild has no time limit, and nothing to confirm. An
    attempt for which nothing is claimed in placement fails if its node has no room any more: see
    `roost.state.cell_database.node_claims`.
    """

    key: AttemptKey
    host: str
    at: float

    @property
    def keys(self) -> Collection[str]:
        return (self.key.instance,)

    def __call__(self, connection: Connection) -> bool:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[ConfirmAttempt]") -> list[bool]:
        under_way = {
            (row.uuid, row.attempt, row.host): row
            for some in in_batches(work.key.instance for work in works)
            for row in connection.execute(_BUILDING, {"uuids": some})
        }
        keys = [(work.key.instance, work.key.attempt, work.host) for work in works]
        new = [row for key in dict.fromkeys(keys) if (row := under_way.get(key)) and row.state == ASSIGNED]
        at = max(work.at for work in works)
        refused = without_room(connection, new)
        for row in new:
            if reason := refused.get(row.uuid):
                _enter(connection, [row.uuid], FAILED, reason, at, line(FAILED, at, reason, NO_ROOM))
                keep_attempts(connection, [ended_attempt(row, record.FAILED, at, reason, NO_ROOM)])
        confirmed = [row.uuid for row in new if row.uuid not in refused]
        _enter(connection, confirmed, STARTING, None, at, line(STARTING, at))
        return [key in under_way and key[0] not in refused for key in keys]


class ReportResults(msgspec.Struct, frozen=True):
    """Store the results of builds; answers the ends of their attempts for the records of ``cell``.

    The first result of an attempt counts, others change nothing. After a failure that no other host can cure,
    no further attempt is made. After a rebuild that failed the instance is lost.
    """

    results: tuple[BuildResult, ...]
    at: float
    cell: str

    @property
    def enters(self) -> Collection[str]:
        return {state_after(each) for each in self.results}

    @property
    def keys(self) -> Collection[str]:
        # Of two results of an attempt the first one counts, also across works.
        return ()

    def __call__(self, connection: Connection) -> list[Attempt]:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[ReportResults]") -> list[list[Attempt]]:
        ended: list[list[Attempt]] = [[] for _ in works]
        at = max(work.at for work in works)
        entering: defaultdict[tuple[str, str | None, str], list[str]] = defaultdict(list)
        failed: list[BuildAttempt] = []
        reported = [
            (place, result) for place, work in enumerate(works) for result in clean_results(work.results)
        ]
        for place, result, row in _current(connection, reported):
            work, reason, state = works[place], result.failure, state_after(result)
            end = BUILT if reason is None else record.FAILED
            if row.state in REBUILDS:
                # No run of the scheduler chose the host for it, and no other host can do it.
                state = LOST if reason is not None else ACTIVE if row.state == REBUILDING else STOPPED
            else:
                ended[place].append(recorded_end(row, work.cell, end, work.at, reason))
            if reason is not None:
                failed.append(ended_attempt(row, record.FAILED, work.at, reason, result.code))
            if state == ABANDONED:
                reason = clean_text(no_cure(ended_attempts_of(result.instance)(connection), result))
            elif state == LOST:
                reason = clean_text(f"the guest could not be made anew: {reason}")
            told = line(state, at, result.failure, result.code)
            entering[state, reason, told].append(result.instance)
        for (state, reason, told), uuids in entering.items():
            _enter(connection, uuids, state, reason, at, told)
        keep_attempts(connection, failed)
        return ended


def state_after(result: BuildResult) -> str:
    """Return the state of an instance after the result of its present attempt."""
    if result.failure is None:
        return ACTIVE
    return FAILED if result.retryable else ABANDONED


def no_cure(earlier: Sequence[BuildAttempt], last: BuildResult) -> str:
    """Return the reason of an instance that is abandoned because no other host could cure the failure."""
    return "; ".join(
        [
            *(reason_of(each) for each in earlier),
            f"attempt {last.attempt} on {last.host}: {last.failure}; no other host can cure that",
        ]
    )


def reason_of(ended: BuildAttempt) -> str:
    """Return why an attempt failed, as an entry of a list of reasons."""
    return f"attempt {ended.attempt} on {ended.host}: {ended.reason}"


HOST_GONE = "HostGone"
"""The code of an attempt on a host that an operator has given up, or that is proved to be dead."""


@entering(FAILED)
def fail_attempts(
    connection: Connection,
    keys: tuple[AttemptKey, ...],
    reason: str,
    at: float,
    cell: str,
    states: tuple[str, ...] = (ASSIGNED,),
    code: str = "TimedOut",
    by: Requester | None = None,
) -> list[Attempt]:
    """End attempts that are in one of ``states``, for ``reason``; returns their ends for the records.

    Their hosts may go on building, and are ordered to destroy the guests.
    """
    rows: list[Row] = []
    told = line(FAILED, at, reason, code, by=by)
    failed = {"state": FAILED, "reason": clean_text(reason), "changed_at": at}
    for key in keys:
        of_it = instances.c.uuid == key.instance, instances.c.attempt == key.attempt
        still = *of_it, instances.c.state.in_(states)
        row = connection.execute(sa.select(*PRESENT).where(*still).with_for_update()).one_or_none()
        if row is not None:
            values = {**failed, "history": with_line(told)}
            connection.execute(sa.update(instances).where(*still).values(**values))
            rows.append(row)
    note_changes(connection, [row.uuid for row in rows], told)
    ended = [ended_attempt(row, record.FAILED, at, reason, code) for row in rows]
    keep_attempts(connection, ended)
    give_orders([DestroyOrder(row.uuid, row.attempt, row.host) for row in rows if row.host], at)(connection)
    return [recorded_end(row, cell, record.FAILED, at, reason) for row in rows]


_NAMED = one_of(instances.c.uuid, "uuids")
# Transactions that lock the same instances lock them in the same order.
_BUILDING = (
    sa.select(*PRESENT)
    .where(_NAMED, one_of_constants(instances.c.state, (*UNDER_WAY, *REBUILDS)))
    .order_by(instances.c.uuid)
    .with_for_update()
)
_ENTER = (
    sa.update(instances)
    .where(_NAMED)
    .values(
        state=sa.bindparam("new_state"),
        reason=sa.bindparam("why"),
        changed_at=sa.bindparam("at"),
        history=with_line(NEW_LINE),
        # Its guest runs again, and its disks are that guest's.
        shelf=sa.case((sa.bindparam("new_state") == ACTIVE, None), else_=instances.c.shelf),
    )
)


def _enter(
    connection: Connection, uuids: Sequence[str], state: str, reason: str | None, at: float, told: str
) -> None:
    """Put instances whose rows are locked into a state. ``told``: the line for their histories."""
    for some in in_batches(uuids):
        connection.execute(_ENTER, {"uuids": some, "new_state": state, "why": reason, "at": at, "line": told})
    note_changes(connection, uuids, told)


def _current(
    connection: Connection, reported: Sequence[tuple[int, BuildResult]]
) -> list[tuple[int, BuildResult, Row]]:
    """Return the results of attempts that are not over, one for each, with their instances' rows, locked."""
    awaited: dict[tuple[str, int, str | None], Row] = {}
    for some in in_batches(result.instance for _, result in reported):
        for row in connection.execute(_BUILDING, {"uuids": some}):
            awaited[row.uuid, row.attempt, row.host] = row
    current = []
    for place, result in reported:
        of_it = awaited.pop((result.instance, result.attempt, result.host), None)
        if of_it is not None:
            current.append((place, result, of_it))
    return current


@transaction
def note_claimed_again(connection: Connection, instance: str, attempt: int, generation: int) -> bool:
    """Note the generation of a claim that was written for an attempt, if that attempt's guest is in place.

    Returns whether it is.
    """
    here = (
        instances.c.uuid == instance,
        instances.c.attempt == attempt,
        one_of_constants(instances.c.state, IN_PLACE),
    )
    row = connection.execute(INSTANCES.where(*here).with_for_update()).one_or_none()
    if row is None or (selection := instance_of(row).selection) is None:
        return False
    new = selection_text(msgspec.structs.replace(selection, generation=generation))
    connection.execute(sa.update(instances).where(*here).values(selection=new))
    return True


def keep_attempts(connection: Connection, ended: Sequence[BuildAttempt]) -> None:
    """Store attempts that have ended."""
    if ended:
        connection.execute(sa.insert(build_attempts), [attempt_row(each) for each in ended])


def ended_attempt(row: Row, result: str, at: float, reason: str, code: str | None = None) -> BuildAttempt:
    """Return the present attempt of an instance, which ends at ``at`` without a guest.

    ``row``: the columns `PRESENT`.
    """
    return BuildAttempt(
        instance=row.uuid,
        attempt=row.attempt,
        host=row.host,
        node=row.node,
        began=row.began,
        ended=at,
        result=result,
        reason=reason,
        code=code,
    )


def recorded_end(row: Row, cell: str, result: str, at: float, reason: str | None) -> Attempt:
    """Return the end of the present attempt of an instance for the records."""
    claimed = selection_of(row) or Selection(row.host or "", row.node or "", cell, {}, {}, 0.0)
    if not claimed.ordinal:
        # A selection that an earlier version stored has none.
        claimed = msgspec.structs.replace(claimed, ordinal=row.attempt)
    shelf = shelf_of(row)
    run, request_id = row.run, row.request_id
    if shelf is not None and shelf.run and shelf.by is not None:
        run, request_id = shelf.run, shelf.by.request_id
    return record.end_of(
        claimed, result, at, run=run, request_id=request_id, instance=row.uuid, reason=reason
    )


@transaction
def ended_attempts_of(connection: Connection, uuid: str) -> list[BuildAttempt]:
    """Return the attempts at an instance that have ended without a guest, in order."""
    query = sa.select(build_attempts).where(build_attempts.c.instance_uuid == uuid)
    return [attempt_of(row) for row in connection.execute(query.order_by(build_attempts.c.attempt))]

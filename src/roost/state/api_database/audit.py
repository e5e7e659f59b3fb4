"""Rounds, findings and repairs of the audit in the API database."""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.state.api_database.event_types import CloudEvent
from roost.state.api_database.events import append_events
from roost.state.api_database.tables import audit_findings, audit_repairs, audit_state
from roost.state.leases import read_stamps
from roost.storage import insert_missing, transaction

LEASE = "audit"
"""Name and kind of the lease under which one process audits."""

DONE = "done"
"""The result of a repair that was made; any other result says why it was refused."""

KEPT_FINDINGS = 1000
"""Findings of a round that are stored. The others are counted."""

KEPT_REPAIRS = 10_000
"""Repairs that are stored. Older ones are deleted."""


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A difference that both looks of a round saw.

    ``subject`` is the instance, or the root provider of a node. ``detail``: the state that was found.
    ``expected``: the state that should be. ``proof``: the facts that both looks have read. ``action``: the
    repair, None if none is certain. ``waits_for``: the reason why it is not made yet.
    """

    kind: str
    subject: str
    detail: str
    expected: str
    proof: dict[str, Any]
    action: str | None
    waits_for: str | None


_FINDING = msgspec.json.Decoder(AuditFinding)
_JSON = msgspec.json.Encoder()


class RoundReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a round besides its findings.

    ``findings``: their number, with those beyond `KEPT_FINDINGS`. ``instances``: the number of compared ones.
    ``unread``: the cells that could not be read, and why. ``asks``: the question to an operator, if any.
    """

    findings: int = 0
    instances: int = 0
    unread: dict[str, str] = {}
    asks: str | None = None


_REPORT = msgspec.json.Decoder(RoundReport)


class AuditState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the rounds.

    ``begun`` and ``ended``: the numbers of the last round that began and of the last that ended.
    ``ended_at``: when that was, in seconds since the epoch. ``report``: its report. ``asked``: an operator
    has asked for a round, which may make ``permitted`` repairs;
    `roost.conductor.audit.findings.DRY_RUN`: none at all.
    """

    begun: int = 0
    ended: int = 0
    ended_at: float = 0.0
    asked: bool = False
    permitted: int = 0
    report: RoundReport = RoundReport()


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """A repair of a finding by a process at a time, in seconds since the epoch.

    ``result``: None if the process died before the end of the repair, or still makes it.
    """

    number: int
    at: float
    by: str
    finding: AuditFinding
    result: str | None


class HeldLease(msgspec.Struct, frozen=True):
    """The ownership of the audit. A write under it changes nothing if others own the audit now."""

    holder: str
    epoch: int

    def holds(self, connection: Connection) -> bool:
        """Return whether it still holds, and lock the lease's row."""
        stamp = read_stamps(connection, [LEASE], lock=True).get(LEASE)
        return stamp is not None and stamp[:2] == (self.holder, self.epoch)


@transaction
def read_audit_state(connection: Connection) -> AuditState:
    """Return the state of the rounds."""
    return _state(connection)


@transaction
def ask_for_audit_round(connection: Connection, permitted: int) -> int:
    """Ask for a round that may make ``permitted`` repairs; returns its number."""
    state = _state(connection, lock=True)
    _put(connection, {"asked": True, "permitted": permitted})
    return state.begun + 1


@transaction
def begin_round(connection: Connection, lease: HeldLease) -> AuditState | None:
    """Begin a round; returns the state before it, None if others own the audit."""
    if not lease.holds(connection):
        return None
    state = _state(connection, lock=True)
    _put(connection, {"begun": state.begun + 1, "asked": False, "permitted": 0})
    return state


@transaction
def end_round(
    connection: Connection,
    lease: HeldLease,
    number: int,
    at: float,
    findings: tuple[AuditFinding, ...],
    report: RoundReport,
) -> bool:
    """Store the findings of a round. Returns False, and stores nothing, if others own the audit."""
    if not lease.holds(connection):
        return False
    _state(connection, lock=True)
    _put(connection, {"ended": number, "ended_at": at, "report": _JSON.encode(report).decode()})
    connection.execute(sa.delete(audit_findings))
    rows = [
        {"number": place, "finding": _JSON.encode(finding).decode()}
        for place, finding in enumerate(findings[:KEPT_FINDINGS], 1)
    ]
    if rows:
        connection.execute(sa.insert(audit_findings), rows)
    return True


@transaction
def begin_repair(
    connection: Connection, lease: HeldLease, at: float, by: str, finding: AuditFinding
) -> int | None:
    """Record a repair that is about to be made; returns its number, None if others own the audit."""
    if not lease.holds(connection):
        return None
    number = int(connection.scalar(sa.select(sa.func.max(audit_repairs.c.number))) or 0) + 1
    row = {
        "number": number,
        "at": at,
        "by": by,
        "finding": _JSON.encode(finding).decode(),
        "result": None,
    }
    connection.execute(sa.insert(audit_repairs), row)
    connection.execute(sa.delete(audit_repairs).where(audit_repairs.c.number <= number - KEPT_REPAIRS))
    return number


@transaction
def end_repair(connection: Connection, number: int, result: str) -> None:
    """Record the result of a repair.

    A repair that was refused before, with the same proof and for the same reason, is recorded once, though
    each round tries it again.
    """
    mine = audit_repairs.c.number == number
    connection.execute(sa.update(audit_repairs).where(mine).values(result=result))
    if result == DONE:
        _append_event(connection, number)
        return
    finding = connection.scalar(sa.select(audit_repairs.c.finding).where(mine))
    same = (
        audit_repairs.c.result == result,
        audit_repairs.c.finding == finding,
        audit_repairs.c.number != number,
    )
    if connection.scalar(sa.select(audit_repairs.c.number).where(*same).limit(1)) is not None:
        connection.execute(sa.delete(audit_repairs).where(mine))


def _append_event(connection: Connection, number: int) -> None:
    query = sa.select(audit_repairs.c.at, audit_repairs.c.finding)
    row = connection.execute(query.where(audit_repairs.c.number == number)).one_or_none()
    if row is not None:
        finding = _FINDING.decode(row.finding)
        event = CloudEvent(
            at=row.at,
            kind="repair",
            instance=finding.subject,
            name=finding.action,
            detail=f"{finding.kind}: {finding.detail}",
        )
        append_events(connection, [event])


@transaction
def read_findings(connection: Connection, after: int, most: int) -> list[tuple[int, AuditFinding]]:
    """Return up to ``most`` findings of the last round after a number, with their numbers."""
    query = (
        sa.select(audit_findings)
        .where(audit_findings.c.number > after)
        .order_by(audit_findings.c.number)
        .limit(most)
    )
    return [(row.number, _FINDING.decode(row.finding)) for row in connection.execute(query)]


@transaction
def read_repairs(connection: Connection, before: int | None, most: int) -> list[Repair]:
    """Return up to ``most`` repairs, the newest first; with ``before``, only those with lower numbers."""
    query = sa.select(audit_repairs)
    if before is not None:
        query = query.where(audit_repairs.c.number < before)
    query = query.order_by(audit_repairs.c.number.desc()).limit(most)
    return [
        Repair(
            number=row.number,
            at=row.at,
            by=row.by,
            finding=_FINDING.decode(row.finding),
            result=row.result,
        )
        for row in connection.execute(query)
    ]


_SELECT = sa.select(audit_state)
_LOCKED = _SELECT.with_for_update()
_UPDATE = sa.update(audit_state)
_FIRST = {"id": 1, "begun": 0, "ended": 0, "ended_at": 0.0, "asked": False, "permitted": 0, "report": "{}"}


def _state(connection: Connection, lock: bool = False) -> AuditState:
    rows: Sequence[sa.Row[tuple[object, ...]]] = connection.execute(_LOCKED if lock else _SELECT).all()
    if not rows:
        if lock:
            insert_missing(connection, sa.insert(audit_state), _FIRST)
        return AuditState()
    [row] = rows
    return AuditState(
        begun=row.begun,
        ended=row.ended,
        ended_at=row.ended_at,
        asked=row.asked,
        permitted=row.permitted,
        report=_REPORT.decode(row.report),
    )


def _put(connection: Connection, values: dict[str, object]) -> None:
    connection.execute(_UPDATE.values(values))

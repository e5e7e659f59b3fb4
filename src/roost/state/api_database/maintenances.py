"""Maintenances in the API database: begun, paused, resumed and cancelled by the words of operators.

A maintenance is owned by one super conductor, under its lease; `maintenance_waves` has what the owner
writes. Each transaction that changes a maintenance or its hosts raises the version of its row first, so that
they happen one after another.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import Requester
from roost.model.maintenance import (
    CANCELLING,
    DISABLING,
    EMPTYING,
    IN_WORK,
    PAUSED,
    RETURNING,
    RUNNING,
    WAITING,
    EarlierWord,
    HookResult,
    Maintenance,
    MaintenanceRefused,
)
from roost.model.operator_word import SaidWord, Subject
from roost.model.text import clean_text
from roost.state.api_database.aggregates.store import next_version, read_version
from roost.state.api_database.event_types import CloudEvent, EventKind
from roost.state.api_database.events import append_events
from roost.state.api_database.maintenance_rows import (
    IS_UNDER_WAY,
    MAINTENANCES,
    HostInWave,
    json_text,
    maintenance_of,
    read_host_in_wave,
    read_wave,
)
from roost.state.api_database.operator_words import say_words
from roost.state.api_database.tables import maintenance_hosts, maintenances
from roost.storage import in_batches, transaction

PRUNED_AT_ONCE = 50
"""Maintenances that one transaction removes at most, with their hosts."""


@transaction
def begin_maintenance(
    connection: Connection,
    maintenance: Maintenance,
    hosts: Mapping[str, str],
    owner: str | None,
) -> Maintenance | MaintenanceRefused:
    """Store a maintenance. ``hosts``: the cell of each. ``owner``: the process that carries it; None: any.

    Refused if another one that is under way has one of the hosts.
    """
    # Two transactions that begin maintenances happen one after another.
    next_version(connection)
    columns = maintenance_hosts.c
    taken = (
        sa.select(columns.host, columns.maintenance)
        .join(maintenances, maintenances.c.uuid == columns.maintenance)
        .where(IS_UNDER_WAY)
    )
    for some in in_batches(sorted(hosts)):
        for host, other in connection.execute(taken.where(columns.host.in_(some)).limit(1)):
            return MaintenanceRefused(f"host {host!r} is in maintenance {other}, which has not ended")
    connection.execute(sa.insert(maintenances), _maintenance_row(maintenance, owner))
    rows = [
        {
            "maintenance": maintenance.uuid,
            "host": host,
            "cell": cell,
            "state": WAITING,
            "changed_at": maintenance.began,
            "wave": 0,
            "targets": "{}",
            "calls": 0,
            "failures": 0,
        }
        for host, cell in sorted(hosts.items())
    ]
    connection.execute(sa.insert(maintenance_hosts), rows)
    detail = "of 1 host" if len(hosts) == 1 else f"of {len(hosts):,} hosts"
    told = maintenance_event(maintenance, "maintenance_begun", maintenance.began, detail, by=maintenance.by)
    append_events(connection, [told])
    return maintenance


def _maintenance_row(maintenance: Maintenance, owner: str | None) -> dict[str, Any]:
    return {
        "uuid": maintenance.uuid,
        "state": maintenance.state,
        "began": maintenance.began,
        "changed_at": maintenance.changed_at,
        "reserve": maintenance.reserve,
        "most_hosts": maintenance.most_hosts,
        "keeps_going": maintenance.keeps_going,
        "wave": maintenance.wave,
        "version": 0,
        "owner": owner,
        "owner_epoch": 1 if owner else 0,
        "by_user": maintenance.by.user_id,
        "by_project": maintenance.by.project_id,
        "by_request": maintenance.by.request_id,
    }


@transaction
def pause_maintenance(
    connection: Connection, uuid: str, reason: str, at: float, by: Requester | None
) -> Maintenance | MaintenanceRefused | None:
    """Pause a maintenance: no further move and no call of the hook begins. None: there is none."""
    found = hold_maintenance(connection, uuid)
    if found is None or found.state == PAUSED:
        return found
    if found.state != RUNNING:
        return MaintenanceRefused(f"the maintenance is {found.state}")
    return pause_held(connection, found, reason, at, by)


@transaction
def resume_maintenance(
    connection: Connection, uuid: str, at: float, by: Requester | None
) -> Maintenance | MaintenanceRefused | None:
    """Let a maintenance that is paused go on. None: there is none."""
    found = hold_maintenance(connection, uuid)
    if found is None or found.state == RUNNING:
        return found
    if found.state != PAUSED:
        return MaintenanceRefused(f"the maintenance is {found.state}")
    _let_move(connection, found, at, by, moves=True)
    return enter(connection, found, RUNNING, at, None, by)


@transaction
def cancel_maintenance(
    connection: Connection, uuid: str, at: float, by: Requester | None
) -> Maintenance | MaintenanceRefused | None:
    """Have a maintenance end: the hosts of its wave are given back. None: there is none."""
    found = hold_maintenance(connection, uuid)
    if found is None or found.state == CANCELLING:
        return found
    if found.state not in (RUNNING, PAUSED):
        return MaintenanceRefused(f"the maintenance is {found.state}")
    _let_move(connection, found, at, by, moves=False)
    return enter(connection, found, CANCELLING, at, None, by)


@transaction
def finish_host(
    connection: Connection, uuid: str, host: str, at: float, by: Requester
) -> Maintenance | MaintenanceRefused | None:
    """Note an operator's word that the work on a host is done, so that it is given back.

    None: there is no such maintenance. A host that is given back already stays so.
    """
    found = hold_maintenance(connection, uuid)
    if found is None:
        return None
    there = read_host_in_wave(connection, uuid, host)
    if there is None:
        return _of_done(connection, found, host)
    if there.row.state == RETURNING and there.row.reason is None:
        return found
    if there.row.state != IN_WORK:
        return MaintenanceRefused(f"host {host!r} is {there.row.state}; only work on an empty host is done")
    result = HookResult(None, None, f"{by.user_id} says that it is done")
    change_host(connection, there, RETURNING, at, result=json_text(result))
    give_back(connection, found, [there], at)
    return found


def _of_done(
    connection: Connection, found: Maintenance, host: str
) -> Maintenance | MaintenanceRefused | None:
    columns = maintenance_hosts.c
    mine = columns.maintenance == found.uuid, columns.host == host
    state = connection.execute(sa.select(columns.state).where(*mine)).scalar()
    if state is None:
        return MaintenanceRefused(f"the maintenance has no host {host!r}")
    if state == WAITING:
        return MaintenanceRefused(f"host {host!r} waits for its wave; only work on an empty host is done")
    return found


@transaction
def prune_maintenances(connection: Connection, older_than: float) -> int:
    """Remove maintenances that ended before ``older_than`` (seconds since the epoch). Returns their number.

    If it is `PRUNED_AT_ONCE` there may be more.
    """
    old = (
        sa.select(maintenances.c.uuid)
        .where(sa.not_(IS_UNDER_WAY), maintenances.c.changed_at < older_than)
        .limit(PRUNED_AT_ONCE)
    )
    found = connection.execute(old).scalars().all()
    if found:
        connection.execute(sa.delete(maintenance_hosts).where(maintenance_hosts.c.maintenance.in_(found)))
        connection.execute(sa.delete(maintenances).where(maintenances.c.uuid.in_(found)))
    return len(found)


# Parts of transactions


_RAISED = {"version": maintenances.c.version + 1}


def hold_maintenance(connection: Connection, uuid: str) -> Maintenance | None:
    """Return a maintenance, which no other transaction changes before this one ends; None: there is none."""
    mine = maintenances.c.uuid == uuid
    if not connection.execute(sa.update(maintenances).where(mine).values(_RAISED)).rowcount:
        return None
    return maintenance_of(connection.execute(MAINTENANCES.where(mine)).one())


def pause_held(
    connection: Connection, held: Maintenance, reason: str, at: float, by: Requester | None = None
) -> Maintenance:
    """Pause a maintenance that is held and running."""
    _let_move(connection, held, at, by, moves=False)
    return enter(connection, held, PAUSED, at, reason, by)


_TOLD: Mapping[str, EventKind] = {
    RUNNING: "maintenance_resumed",
    PAUSED: "maintenance_paused",
    CANCELLING: "maintenance_cancelled",
}


def enter(
    connection: Connection,
    held: Maintenance,
    state: str,
    at: float,
    reason: str | None,
    by: Requester | None = None,
    detail: str | None = None,
) -> Maintenance:
    """Let a maintenance that is held enter a state, with its event. ``detail``: of the event, else the
    reason."""
    text = None if reason is None else clean_text(reason)
    values = {"state": state, "changed_at": at, "reason": text}
    connection.execute(sa.update(maintenances).where(maintenances.c.uuid == held.uuid).values(values))
    kind = _TOLD.get(state, "maintenance_ended")
    append_events(connection, [maintenance_event(held, kind, at, detail or text, by=by)])
    found = connection.execute(MAINTENANCES.where(maintenances.c.uuid == held.uuid)).one()
    return maintenance_of(found)


def maintenance_event(
    maintenance: Maintenance,
    kind: EventKind,
    at: float,
    detail: str | None,
    *,
    by: Requester | None = None,
    cell: str | None = None,
    host: str | None = None,
) -> CloudEvent:
    """Return an event of a maintenance, or of one of its hosts."""
    return CloudEvent(at=at, kind=kind, cell=cell, host=host, name=maintenance.uuid, detail=detail, by=by)


def change_host(connection: Connection, host: HostInWave, state: str, at: float, **values: Any) -> None:
    """Let a host of a maintenance that is held enter a state. ``values``: of further columns."""
    columns = maintenance_hosts.c
    mine = columns.maintenance == host.row.maintenance, columns.host == host.row.host
    values |= {"state": state, "changed_at": at}
    connection.execute(sa.update(maintenance_hosts).where(*mine).values(values))


def give_back(connection: Connection, held: Maintenance, hosts: Sequence[HostInWave], at: float) -> None:
    """Say again what was said of hosts before the maintenance disabled them, unless somebody has said
    something else since."""
    said = [
        SaidWord(
            Subject(each.row.cell, each.row.host),
            before.enabled,
            before.reason,
            at,
            before.moves,
            before.live,
        )
        for each in hosts
        if each.is_own
        for before in (each.row.before or EarlierWord(enabled=True),)
    ]
    if said:
        say_words(tuple(said), held.by)(connection)


def say_of_wave(
    connection: Connection, held: Maintenance, words: Sequence[SaidWord], at: float, by: Requester | None
) -> int:
    """Say words on hosts of a maintenance; returns their version."""
    say_words(tuple(words), by)(connection)
    return read_version(connection)


def _let_move(
    connection: Connection, held: Maintenance, at: float, by: Requester | None, *, moves: bool
) -> None:
    """Have the instances of the hosts that are being emptied move, or stay. Words of others are left."""
    leaving = [
        each
        for each in read_wave(held.uuid)(connection)
        if each.is_own and each.row.state in (DISABLING, EMPTYING)
    ]
    if not leaving:
        return
    reason = reason_of_word(held)
    words = [SaidWord(Subject(each.row.cell, each.row.host), False, reason, at, moves) for each in leaving]
    version = say_of_wave(connection, held, words, at, by)
    for each in leaving:
        change_host(connection, each, each.row.state, each.row.changed_at, word_version=version)


def reason_of_word(maintenance: Maintenance) -> str:
    """Return the reason for which a maintenance disables hosts."""
    return f"maintenance {maintenance.uuid}"

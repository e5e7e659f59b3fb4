"""The writes of the owner of a maintenance: waves begin, their hosts are worked on and given back.

Each write names the owner and its number. It changes nothing, and returns None, if another process owns the
maintenance.
"""

from collections.abc import Collection, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.maintenance import (
    CANCELLED,
    CANCELLING,
    DISABLING,
    DONE,
    EMPTYING,
    IN_WORK,
    LEFT_OUT,
    RETURNED,
    RETURNING,
    RUNNING,
    WAITING,
    EarlierWord,
    HookResult,
    HostState,
    MaintainedHost,
    Maintenance,
)
from roost.model.operator_word import SaidWord, Subject
from roost.model.text import clean_text
from roost.state.api_database.drains import is_live, is_moving
from roost.state.api_database.events import append_events
from roost.state.api_database.maintenance_rows import (
    HOSTS,
    IS_UNDER_WAY,
    MAINTENANCES,
    count_hosts,
    host_of,
    json_text,
    maintenance_of,
    read_host_in_wave,
    read_wave,
)
from roost.state.api_database.maintenances import (
    change_host,
    enter,
    give_back,
    hold_maintenance,
    maintenance_event,
    pause_held,
    reason_of_word,
    say_of_wave,
)
from roost.state.api_database.tables import maintenance_hosts, maintenances, operator_words
from roost.state.leases import holders
from roost.storage import in_batches, short_read, transaction


class MaintenanceOwner(msgspec.Struct, frozen=True):
    """The ownership of a maintenance, as each write of its owner names it."""

    uuid: str
    owner: str
    epoch: int


_FREE = sa.and_(IS_UNDER_WAY, maintenances.c.owner.is_(None) | maintenances.c.owner.not_in(holders()))


@short_read
def has_free_maintenances(connection: Connection) -> bool:
    """Return whether a maintenance that is under way has no living owner."""
    return connection.execute(sa.select(maintenances.c.uuid).where(_FREE).limit(1)).first() is not None


@transaction
def take_maintenances(connection: Connection, owner: str) -> None:
    """Take the maintenances whose owner is dead."""
    values = {
        "owner": owner,
        "owner_epoch": maintenances.c.owner_epoch + 1,
        "version": maintenances.c.version + 1,
    }
    connection.execute(sa.update(maintenances).where(_FREE).values(values))


@short_read
def owned_maintenances(connection: Connection, owner: str) -> list[Maintenance]:
    """Return the maintenances under way that a process owns."""
    mine = MAINTENANCES.where(IS_UNDER_WAY, maintenances.c.owner == owner).order_by(maintenances.c.uuid)
    return [maintenance_of(row) for row in connection.execute(mine)]


@transaction
def begin_wave(
    connection: Connection, owned: MaintenanceOwner, targets: Mapping[str, Mapping[str, str]], at: float
) -> Maintenance | None:
    """Begin a wave: its hosts are disabled, and their instances move. None: it cannot begin now.

    ``targets``: the hosts of the wave, and for each the target of each of its instances.
    """
    held = _hold(connection, owned)
    if held is None or held.state != RUNNING or read_wave(owned.uuid)(connection):
        return None
    waiting = _hosts(connection, owned.uuid, targets, WAITING)
    if not waiting:
        return None
    before = _words(connection, waiting)
    reason, wave = reason_of_word(held), held.wave + 1
    words = [SaidWord(Subject(each.cell, each.host), False, reason, at, True) for each in waiting]
    version = say_of_wave(connection, held, words, at, held.by)
    for each in waiting:
        earlier = before.get(each.host)
        values = {
            "state": DISABLING,
            "changed_at": at,
            "wave": wave,
            "targets": json_text(targets[each.host]),
            "word_version": version,
            "word_before": None if earlier is None else json_text(earlier),
            "reason": None,
        }
        connection.execute(sa.update(maintenance_hosts).where(*_one(each)).values(values))
    mine = sa.update(maintenances).where(maintenances.c.uuid == owned.uuid)
    connection.execute(mine.values(wave=wave, reason=None))
    hosts = "1 host" if len(waiting) == 1 else f"{len(waiting):,} hosts"
    append_events(
        connection, [maintenance_event(held, "maintenance_wave", at, f"wave {wave}: {hosts}", by=None)]
    )
    return msgspec.structs.replace(held, wave=wave)


@transaction
def note_announced(
    connection: Connection, owned: MaintenanceOwner, hosts: tuple[str, ...], at: float
) -> bool | None:
    """Note that the words which disable hosts are announced: no further instance is put there."""
    if _hold(connection, owned) is None:
        return None
    for each in read_wave(owned.uuid)(connection):
        if each.row.host in hosts and each.row.state == DISABLING:
            change_host(connection, each, EMPTYING, at)
    return True


@transaction
def note_empty(
    connection: Connection, owned: MaintenanceOwner, hosts: tuple[str, ...], at: float
) -> bool | None:
    """Note that hosts are empty, if their drains have ended, so that the work on them may begin."""
    if _hold(connection, owned) is None:
        return None
    for each in read_wave(owned.uuid)(connection):
        if each.row.host in hosts and each.row.state == EMPTYING and each.empty:
            change_host(connection, each, IN_WORK, at)
    return True


@transaction
def empty_again(connection: Connection, owned: MaintenanceOwner, host: str, at: float) -> bool | None:
    """Note that a host may have instances again: an operator has enabled it for a time."""
    there = None if _hold(connection, owned) is None else read_host_in_wave(connection, owned.uuid, host)
    if there is None or there.row.state != IN_WORK or there.empty:
        return None
    change_host(connection, there, EMPTYING, at)
    return True


@transaction
def begin_call(connection: Connection, owned: MaintenanceOwner, host: str) -> int | None:
    """Begin a call of the hook for a host that is empty; returns its number, from 1. None: none may begin."""
    held = _hold(connection, owned)
    there = None if held is None else read_host_in_wave(connection, owned.uuid, host)
    if held is None or held.state != RUNNING or there is None:
        return None
    if there.row.state != IN_WORK or not there.empty:
        return None
    change_host(connection, there, IN_WORK, there.row.changed_at, calls=there.row.calls + 1)
    return there.row.calls + 1


@transaction
def end_call(
    connection: Connection, owned: MaintenanceOwner, host: str, result: HookResult, tries: int, at: float
) -> MaintainedHost | None:
    """Note the end of a call of the hook. Returns the host as it is then.

    After ``tries`` failed calls the host is left out; after one that has not failed it is given back.
    """
    held = _hold(connection, owned)
    there = None if held is None else read_host_in_wave(connection, owned.uuid, host)
    if held is None or there is None or there.row.state != IN_WORK:
        return None
    failures = there.row.failures + (result.failure is not None)
    values = {"failures": failures, "result": json_text(result)}
    if result.failure is None:
        change_host(connection, there, RETURNING, at, **values)
        give_back(connection, held, [there], at)
    elif failures >= tries:
        reason = f"the hook failed {failures} times: {result.failure}"
        _leave_out(connection, held, there.row.host, reason, at, values)
    else:
        change_host(connection, there, IN_WORK, there.row.changed_at, **values)
    return _hosts(connection, owned.uuid, (host,))[0]


@transaction
def return_host(
    connection: Connection, owned: MaintenanceOwner, host: str, reason: str, at: float
) -> bool | None:
    """Leave a host of the wave out, and give it back. The maintenance pauses, unless it keeps going."""
    held = _hold(connection, owned)
    if held is None:
        return None
    return _leave_out(connection, held, host, reason, at, {})


@transaction
def note_returned(
    connection: Connection, owned: MaintenanceOwner, hosts: tuple[str, ...], at: float
) -> list[HostState] | None:
    """Note that the words by which hosts are given back are announced; returns the states of the hosts."""
    held = _hold(connection, owned)
    if held is None:
        return None
    states: list[HostState] = []
    for each in read_wave(owned.uuid)(connection):
        if each.row.host in hosts and each.row.state == RETURNING:
            states.append(RETURNED if each.row.reason is None else LEFT_OUT)
            change_host(connection, each, states[-1], at)
    return states


@transaction
def leave_out(
    connection: Connection, owned: MaintenanceOwner, reasons: Mapping[str, str], at: float
) -> int | None:
    """Leave hosts out that wait for their wave. Returns their number. ``reasons``: by host."""
    held = _hold(connection, owned)
    if held is None:
        return None
    waiting = _hosts(connection, owned.uuid, reasons, WAITING)
    told = []
    for each in waiting:
        reason = clean_text(reasons[each.host])
        values = {"state": LEFT_OUT, "changed_at": at, "reason": reason}
        connection.execute(sa.update(maintenance_hosts).where(*_one(each)).values(values))
        told.append(
            maintenance_event(held, "maintenance_host_left_out", at, reason, cell=each.cell, host=each.host)
        )
    append_events(connection, told)
    return len(waiting)


@transaction
def note_reason(
    connection: Connection, owned: MaintenanceOwner, reason: str | None, at: float, *, pauses: bool
) -> Maintenance | None:
    """Note why the next wave does not begin, or what this one waits for; None: nothing holds it up.

    ``pauses``: the maintenance pauses.
    """
    held = _hold(connection, owned)
    if held is None or held.state != RUNNING:
        return None
    if pauses and reason is not None:
        return pause_held(connection, held, reason, at)
    mine = sa.update(maintenances).where(maintenances.c.uuid == owned.uuid)
    connection.execute(mine.values(reason=None if reason is None else clean_text(reason)))
    return held


@transaction
def end_maintenance(connection: Connection, owned: MaintenanceOwner, at: float) -> Maintenance | None:
    """Let a maintenance end of which nothing is left to do; None: there is something left."""
    held = _hold(connection, owned)
    if held is None or read_wave(owned.uuid)(connection):
        return None
    numbers = count_hosts(owned.uuid)(connection)
    if held.state == RUNNING and not numbers.get(WAITING):
        end = DONE
    elif held.state == CANCELLING:
        end = CANCELLED
    else:
        return None
    detail = ", ".join(f"{number:,} {state}" for state, number in sorted(numbers.items()))
    return enter(connection, held, end, at, None, detail=detail)


def _hold(connection: Connection, owned: MaintenanceOwner) -> Maintenance | None:
    """Return the maintenance, locked; None: another process owns it."""
    held = hold_maintenance(connection, owned.uuid)
    if held is None or (held.owner, held.owner_epoch) != (owned.owner, owned.epoch):
        return None
    return held


def _leave_out(
    connection: Connection, held: Maintenance, host: str, reason: str, at: float, values: Mapping[str, object]
) -> bool | None:
    there = read_host_in_wave(connection, held.uuid, host)
    if there is None or there.row.state == RETURNING:
        return None
    reason = clean_text(reason)
    change_host(connection, there, RETURNING, at, reason=reason, **values)
    give_back(connection, held, [there], at)
    told = maintenance_event(held, "maintenance_host_left_out", at, reason, cell=there.row.cell, host=host)
    append_events(connection, [told])
    if held.state == RUNNING and not held.keeps_going:
        pause_held(connection, held, f"host {host} is left out: {reason}", at)
    return True


def _hosts(
    connection: Connection, uuid: str, names: Collection[str], state: str | None = None
) -> list[MaintainedHost]:
    columns = maintenance_hosts.c
    query = HOSTS.where(columns.maintenance == uuid).order_by(columns.host)
    if state is not None:
        query = query.where(columns.state == state)
    return [
        host_of(row)
        for some in in_batches(sorted(names))
        for row in connection.execute(query.where(columns.host.in_(some)))
    ]


def _one(host: MaintainedHost) -> tuple[sa.ColumnElement[bool], ...]:
    columns = maintenance_hosts.c
    return columns.maintenance == host.maintenance, columns.host == host.host


def _words(connection: Connection, hosts: Collection[MaintainedHost]) -> dict[str, EarlierWord]:
    """Return the words on hosts, as they are before the maintenance says its own."""
    cells = {each.host: each.cell for each in hosts}
    columns = operator_words.c
    found = {}
    for some in in_batches(sorted(cells)):
        query = sa.select(operator_words).where(columns.host.in_(some), columns.node == "")
        for row in connection.execute(query):
            if cells[row.host] == row.cell:
                found[row.host] = EarlierWord(row.enabled, row.reason, is_moving(row), is_live(row))
    return found

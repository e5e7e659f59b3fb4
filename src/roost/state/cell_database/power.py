"""The power of instances: users have them stopped and started again, and hosts report the results.

As with moves, the state of the instance is the order (`roost.model.instance.AT_HOST`), and its hosts get the
same orders as by moves. A word of the opposite kind may follow at any time: the state says which result is
waited for, so one that comes late changes nothing.
"""

from collections.abc import Iterable

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import (
    ACTIVE,
    AT_HOST,
    LOST,
    POWERING_OFF,
    POWERING_ON,
    STOPPED,
    ChangeRefused,
    Instance,
    PowerResult,
    Requester,
)
from roost.model.move_states import SETTLED
from roost.model.record import Attempt
from roost.state.cell_database.history import enter_state
from roost.state.cell_database.move_changes import locked_instance
from roost.state.cell_database.move_reports import report_power_of_move
from roost.state.cell_database.tables import moves
from roost.storage import entering

_THERE = {True: (ACTIVE, POWERING_ON), False: (STOPPED, POWERING_OFF)}
"""By whether the guest is wanted to run: the states in which it does, or is about to."""

_FROM = {True: (STOPPED, POWERING_OFF, LOST), False: (ACTIVE, POWERING_ON)}
"""By whether the guest is wanted to run: the states that a word takes the instance out of.

A guest that is lost may only be off, as after a restart of its host.
"""


@entering(POWERING_OFF, POWERING_ON)
def switch_power(
    connection: Connection, *, instance: str, runs: bool, by: Requester, at: float
) -> Instance | ChangeRefused | None:
    """Have the host of an instance stop its guest, or start it again; None: the cell has no such instance.

    ``runs``: whether the guest is to run. An instance that is so, or is about to be, is returned as it is.
    """
    locked = locked_instance(connection, instance)
    if locked is None:
        return None
    if locked.state in _THERE[runs]:
        return locked
    if locked.state not in _FROM[runs]:
        return ChangeRefused(f"the instance is {locked.state}: it cannot be {_WORDS[runs]}")
    if locked.move is not None:
        moving = sa.select(moves.c.state).where(moves.c.uuid == locked.move)
        if connection.execute(moving).scalar() not in SETTLED:
            return ChangeRefused(f"the instance moves: it cannot be {_WORDS[runs]} before the move has ended")
    state = POWERING_ON if runs else POWERING_OFF
    enter_state(connection, [instance], state, at, by=by)
    return msgspec.structs.replace(locked, state=state, reason=None)


_WORDS = {True: "started", False: "stopped"}


def report_power(
    connection: Connection, host: str, reports: Iterable[PowerResult], at: float
) -> list[Attempt]:
    """Note which guests a host has stopped or started, or could not: for their users, or for moves.

    Returns the ends of attempts of moves for the records.
    """
    ended: list[Attempt] = []
    for report in reports:
        locked = locked_instance(connection, report.instance)
        is_present = locked is not None and (locked.attempt, locked.host) == (report.attempt, host)
        if locked is not None and is_present and locked.state in _AFTER:
            if AT_HOST[locked.state] == ("start" if report.runs else "stop"):
                _settle(connection, locked, report, at)
        elif (end := report_power_of_move(connection, host, report, at)) is not None:
            ended.append(end)
    return ended


_AFTER = {POWERING_OFF: (STOPPED, ACTIVE), POWERING_ON: (ACTIVE, LOST)}
"""By state, the one that follows once the host has done its order, and the one if it could not.

The list of guests then says whether the guest runs: see `roost.state.cell_database.guests`.
"""

_FAILED = {POWERING_OFF: "the guest could not be stopped", POWERING_ON: "the guest could not be started"}


def _settle(connection: Connection, instance: Instance, report: PowerResult, at: float) -> None:
    done, otherwise = _AFTER[instance.state]
    if report.failure is None:
        enter_state(connection, [instance.uuid], done, at)
    else:
        reason = f"{_FAILED[instance.state]}: {report.failure}"
        enter_state(connection, [instance.uuid], otherwise, at, reason)


@entering(ACTIVE, LOST)
def refuse_power(connection: Connection, parts: tuple[Instance, ...], reason: str, at: float) -> None:
    """Note that hosts cannot stop or start the guests of instances, as their states order it."""
    for part in sorted(parts, key=lambda each: each.uuid):
        runs = part.state == POWERING_ON
        report_power(connection, part.host or "", [PowerResult(part.uuid, part.attempt, runs, reason)], at)

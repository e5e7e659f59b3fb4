"""The end of instances by an operator's word: on a host that is gone for good, or with a vanished guest.

No time limit ends an attempt whose guest may have been started, and no report ends an instance: only an
operator who knows that the machine is off, or its disk lost, can say that no guest of it runs.
"""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.history import Requester
from roost.model.instance import (
    ABANDONED,
    ACTIVE,
    ASSIGNED,
    DELETING,
    DESTROYED,
    FAILED,
    LOST,
    ON_ITS_HOST,
    STARTING,
    DestroyOrder,
)
from roost.model.record import Attempt
from roost.model.text import clean_text
from roost.state.cell_database.building import AttemptKey, fail_attempts
from roost.state.cell_database.deletions import end_deletions
from roost.state.cell_database.history import line, with_line
from roost.state.cell_database.orders import give_orders
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import instances
from roost.storage import entering

HOST_GONE = "HostGone"
"""The code of an attempt that an operator has ended."""


class GivenUp(msgspec.Struct, frozen=True):
    """The ended instances by uuid, and the ends of attempts for the records."""

    instances: frozenset[str]
    ended: list[Attempt]


@entering(FAILED, ABANDONED, DESTROYED)
def give_up_on_host(
    connection: Connection,
    *,
    host: str,
    reason: str,
    at: float,
    cell: str,
    only: str | None = None,
    by: Requester | None = None,
    states: tuple[str, ...] = ON_ITS_HOST,
) -> GivenUp:
    """End the instances on a host for a ``reason``, or one of them, ``only``. ``by``: the requester.

    An attempt that has not ended fails, so that another host is tried. An instance that ran is abandoned: its
    claim is freed and it is in error. A deletion goes on. The host is ordered to destroy all guests, in case
    it comes back.
    """
    there = [instances.c.host == host, instances.c.state.in_(states)]
    if only is not None:
        there.append(instances.c.uuid == only)
    columns = instances.c.uuid, instances.c.attempt, instances.c.state
    by_state: dict[str, list[AttemptKey]] = {}
    for row in connection.execute(sa.select(*columns).where(*there).with_for_update()):
        by_state.setdefault(row.state, []).append(AttemptKey(row.uuid, row.attempt))
    building = (*by_state.get(ASSIGNED, ()), *by_state.get(STARTING, ()))
    ran = (*by_state.get(ACTIVE, ()), *by_state.get(LOST, ()))
    failing = fail_attempts(building, reason, at, cell, (ASSIGNED, STARTING), HOST_GONE, by)
    ended = failing(connection)
    told = line(ABANDONED, at, reason, HOST_GONE, by=by)
    for key in ran:
        values = {
            "state": ABANDONED,
            "reason": clean_text(reason),
            "owner": None,
            "history": with_line(told),
        }
        of_it = instances.c.uuid == key.instance
        connection.execute(sa.update(instances).where(of_it).values(**values, changed_at=at))
    note_changes(connection, [key.instance for key in ran], told)
    given = [DestroyOrder(key.instance, key.attempt, host) for key in ran]
    give_orders(given, at)(connection)
    deleting = tuple(by_state.get(DELETING, ()))
    end_deletions(deleting, at)(connection)
    return GivenUp(frozenset(key.instance for key in (*building, *ran, *deleting)), ended)

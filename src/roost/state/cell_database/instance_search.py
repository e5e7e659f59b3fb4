"""Searches for instances by facts that only the cell has, and counts of those on disabled subjects."""

from collections import Counter, defaultdict
from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import (
    FAILED,
    ON_ITS_HOST,
    UNSETTLED,
    UNSHELVING,
    BuildAttempt,
    Instance,
)
from roost.model.move_states import REQUESTED, RETRYING, SEEKING, SENDING
from roost.model.operator_word import Subject
from roost.state.cell_database.move_halves import OF_HALVES
from roost.state.cell_database.move_orders import guests_of_moves
from roost.state.cell_database.rows import INSTANCES, attempt_of, instance_of
from roost.state.cell_database.tables import build_attempts, instances, moves
from roost.storage import in_batches, one_of, one_of_constants, transaction


@transaction
def search_instances(
    connection: Connection,
    *,
    most: int,
    after: str = "",
    request_ids: tuple[str, ...] | None = None,
    project_id: str | None = None,
    state: str | None = None,
    host: str | None = None,
    changed_since: float | None = None,
) -> list[str]:
    """Return the uuids of the first ``most`` instances after one, in order, that meet all conditions.

    ``changed_since``: the time of the last change of state or host, in seconds since the epoch.
    """
    query = sa.select(instances.c.uuid).where(instances.c.uuid > after)
    values = {} if request_ids is None else {"requests": request_ids}
    if request_ids is not None:
        query = query.where(one_of(instances.c.request_id, "requests"))
    for name, value in (("project_id", project_id), ("state", state), ("host", host)):
        if value is not None:
            query = query.where(instances.c[name] == value)
    if changed_since is not None:
        query = query.where(instances.c.changed_at >= changed_since)
    query = query.order_by(instances.c.uuid).limit(most)
    return list(connection.execute(query, values).scalars())


class _Asked(msgspec.Struct):
    flavor: msgspec.Raw = msgspec.Raw(b"")


_asked = msgspec.json.Decoder(_Asked)


@transaction
def read_flavors(connection: Connection, most: int) -> dict[bytes, int]:
    """Count the flavors of the cell's instances, of ``most`` instances at most: each as JSON."""
    query = sa.select(instances.c.spec).where(instances.c.spec.is_not(None)).limit(most)
    found: Counter[bytes] = Counter()
    for spec in connection.execute(query).scalars():
        flavor = bytes(_asked.decode(spec or "{}").flavor)
        if flavor:
            found[flavor] += 1
    return dict(found)


@transaction
def read_placed(connection: Connection) -> list[Instance]:
    """Return all instances that are on a host, or have a claim there."""
    query = INSTANCES.where(_THERE, instances.c.host.is_not(None)).order_by(instances.c.uuid)
    return [instance_of(row) for row in connection.execute(query)]


class DescribedInstance(msgspec.Struct, frozen=True):
    """An instance, its attempts that have ended without a guest, and when it changed last."""

    instance: Instance
    attempts: list[BuildAttempt]
    changed_at: float


@transaction
def describe_instances(connection: Connection, uuids: tuple[str, ...]) -> Mapping[str, DescribedInstance]:
    """Describe instances by uuid; those that are not in the cell are left out."""
    found = {
        row.uuid: DescribedInstance(instance_of(row), [], row.changed_at)
        for some in in_batches(uuids)
        for row in connection.execute(_DESCRIBED, {"uuids": some})
    }
    # An instance that runs on its first attempt may have others, of moves that failed or were reverted.
    for some in in_batches(found):
        for row in connection.execute(_ATTEMPTS, {"uuids": some}):
            found[row.instance_uuid].attempts.append(attempt_of(row))
    return found


_DESCRIBED = INSTANCES.add_columns(instances.c.changed_at).where(one_of(instances.c.uuid, "uuids"))
_ATTEMPTS = (
    sa.select(build_attempts)
    .where(one_of(build_attempts.c.instance_uuid, "uuids"))
    .order_by(build_attempts.c.instance_uuid, build_attempts.c.attempt)
)


PLACED = frozenset((*UNSETTLED, *ON_ITS_HOST))
"""The states of instances that are on a host, or have a claim there: all but error."""


class Remaining(msgspec.Struct, frozen=True):
    """The number of instances that are left on each subject. A subject without instances is left out.

    Guests of moves count too: those that come, and those that are kept until a move is confirmed.
    ``moving_since``: the time (seconds since the epoch) since which an instance is on its way to another
    host, where its claim may be already; None without such an instance.
    """

    instances: dict[Subject, int]
    moving_since: float | None


@transaction
def count_remaining(connection: Connection, subjects: tuple[Subject, ...]) -> Remaining:
    """Count the instances that are left on some subjects of this cell: hosts, nodes, or the whole cell."""
    found: Counter[Subject] = Counter()
    of_host: defaultdict[str, list[Subject]] = defaultdict(list)
    for subject in subjects:
        of_host[subject.host].append(subject)
    for some in in_batches(host for host in of_host if host):
        for row in connection.execute(_ON_HOSTS, {"hosts": some}):
            for subject in of_host[row.host]:
                if subject.node in ("", row.node):
                    found[subject] += row.number
        for host, guest in guests_of_moves(connection, some):
            for subject in of_host[host]:
                if subject.node in ("", guest.node):
                    found[subject] += 1
    for subject in subjects:
        if not subject.host and (number := sum(connection.execute(_OF_CELL).scalars())):
            found[subject] = number
    moving = [each for each in connection.execute(_MOVING).scalars() if each is not None]
    return Remaining(dict(found), min(moving, default=None))


_NUMBER = sa.func.count().label("number")
_THERE = one_of_constants(instances.c.state, PLACED)
_ON_HOSTS = (
    sa.select(instances.c.host, instances.c.node, _NUMBER)
    .where(_THERE, one_of(instances.c.host, "hosts"))
    .group_by(instances.c.host, instances.c.node)
)
_OF_CELL = sa.union_all(
    sa.select(_NUMBER).where(_THERE, instances.c.host.is_not(None)),
    # Of instances that are on their way to another cell or from one, and have no row here.
    sa.select(_NUMBER).select_from(moves).where(*OF_HALVES),
)
_MOVING = sa.union_all(
    sa.select(sa.func.min(instances.c.changed_at)).where(
        one_of_constants(instances.c.state, (FAILED, UNSHELVING))
    ),
    sa.select(sa.func.min(moves.c.changed_at)).where(
        one_of_constants(moves.c.state, (REQUESTED, SEEKING, SENDING, RETRYING))
    ),
)

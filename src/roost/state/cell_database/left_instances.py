"""The instances that are left on disabled hosts, nodes and cells."""

from collections import Counter, defaultdict

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import FAILED, ON_ITS_HOST, UNSETTLED
from roost.model.operator_word import Subject
from roost.state.cell_database.tables import instances
from roost.storage import in_batches, one_of, one_of_constants, transaction

PLACED = frozenset((*UNSETTLED, *ON_ITS_HOST))
"""The states of instances that are on a host, or have a claim there: all but error."""


class Remaining(msgspec.Struct, frozen=True):
    """The number of instances that are left on each subject. A subject without instances is left out.

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
    for subject in subjects:
        if not subject.host and (number := connection.execute(_OF_CELL).scalar_one()):
            found[subject] = number
    return Remaining(dict(found), connection.execute(_MOVING).scalar())


_NUMBER = sa.func.count().label("number")
_THERE = one_of_constants(instances.c.state, PLACED)
_ON_HOSTS = (
    sa.select(instances.c.host, instances.c.node, _NUMBER)
    .where(_THERE, one_of(instances.c.host, "hosts"))
    .group_by(instances.c.host, instances.c.node)
)
_OF_CELL = sa.select(_NUMBER).where(_THERE, instances.c.host.is_not(None))
_MOVING = sa.select(sa.func.min(instances.c.changed_at)).where(instances.c.state == FAILED)

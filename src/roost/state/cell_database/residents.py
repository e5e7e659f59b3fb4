"""The instances of some hosts that may move, with the specs that they were built from."""

from collections.abc import Collection

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import IN_PLACE
from roost.model.move import has_attachments
from roost.model.spec import RequestSpec
from roost.state.cell_database.moves import refusal_of
from roost.state.cell_database.rows import INSTANCES, instance_of
from roost.state.cell_database.tables import instances
from roost.storage import one_of, one_of_constants, transaction


class Resident(msgspec.Struct, frozen=True, array_like=True):
    """An instance that may move. ``node``: the uuid of the root provider of its host.

    ``consumer``: the one that has its claim; empty: the instance itself.
    """

    instance: str
    project_id: str
    flavor: str
    host: str
    node: str
    spec: RequestSpec
    consumer: str = ""

    @property
    def holder(self) -> str:
        """The consumer that has its claim."""
        return self.consumer or self.instance


class Residents(msgspec.Struct, frozen=True, array_like=True):
    """``movable``: by uuid. ``fixed``: the number of instances that may not move. ``complete``: False if
    there are more."""

    movable: tuple[Resident, ...]
    fixed: int
    complete: bool


@transaction
def read_residents(connection: Connection, hosts: Collection[str], most: int) -> Residents:
    """Return the instances of some hosts, at most ``most``: those that run there or are stopped there."""
    rows = connection.execute(_ON_HOSTS, {"hosts": sorted(hosts), "most": most + 1}).all()
    found = [instance_of(row) for row in rows[:most]]
    movable = []
    for each in found:
        spec, host, node = each.spec, each.host, each.node
        if each.move is not None or refusal_of(each) is not None or None in (spec, host, node):
            continue
        assert spec is not None and host is not None and node is not None
        # Whether its ports and accelerators can be bound at a target is for others to say.
        if not has_attachments(spec):
            movable.append(Resident(each.uuid, each.project_id, each.flavor, host, node, spec, each.consumer))
    return Residents(tuple(movable), len(found) - len(movable), len(rows) <= most)


_ON_HOSTS = (
    INSTANCES.where(one_of_constants(instances.c.state, IN_PLACE), one_of(instances.c.host, "hosts"))
    .order_by(instances.c.host, instances.c.uuid)
    .limit(sa.bindparam("most"))
)

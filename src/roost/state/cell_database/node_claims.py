"""Claims on a node by instances that hold nothing in placement, judged in the cell.

While hosts come from the cells' databases (`roost.scheduler.candidates`), nothing is claimed in placement,
and two schedulers may choose the last room of a node. Then the agent's confirmation that it may start a guest
is the claim: one host confirms one build at a time, as its session is locked, and confirmed builds count.
"""

from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet.fits import has_room
from roost.model.instance import DELETING, STARTING, WITH_GUEST
from roost.model.node import amounts_of
from roost.state.cell_database.rows import PRESENT, Row, report_of, selection_of
from roost.state.cell_database.tables import instances, nodes
from roost.storage import in_batches, one_of, one_of_constants

NO_ROOM = "NoRoomOnNode"
"""The code of an attempt whose node has no room left when its host confirms it."""

_HELD = (STARTING, *WITH_GUEST, DELETING)
"""States in which an instance has taken its room of the node."""

_NODES = sa.select(nodes).where(one_of(nodes.c.node, "nodes"))
_THERE = sa.select(*PRESENT).where(
    one_of(instances.c.host, "hosts"), one_of_constants(instances.c.state, _HELD)
)


def without_room(connection: Connection, rows: Sequence[Row]) -> dict[str, str]:
    """Return by uuid why instances that are about to start do not fit on the nodes that they are assigned to.

    ``rows``: the columns `roost.state.cell_database.rows.PRESENT` of instances, locked, in order. Only
    instances are judged whose selections say that nothing is claimed, on nodes that report amounts. Of
    several on one node the first ones get the room.
    """
    asking = [(row, chosen) for row in rows if (chosen := selection_of(row)) and chosen.generation is None]
    if not asking:
        return {}
    # Mostly there are none: agents of Roost report no amounts, since these are in placement.
    told = {
        row.node: amounts
        for some in in_batches(chosen.node for _, chosen in asking)
        for row in connection.execute(_NODES, {"nodes": some})
        if (amounts := amounts_of(report_of(row, "")))
    }
    used: defaultdict[tuple[str, str], int] = defaultdict(int)
    for some in in_batches(row.host for row, chosen in asking if chosen.node in told):
        for there in connection.execute(_THERE, {"hosts": some}):
            if (held := selection_of(there)) is not None:
                for name, amount in held.allocations.get(held.node, {}).items():
                    used[held.node, name] += amount
    refused = {}
    for row, chosen in asking:
        amounts = told.get(chosen.node, {})
        wanted = chosen.allocations.get(chosen.node, {})
        short = [
            f"{amount} {name} of {amounts[name].capacity}, of which {used[chosen.node, name]} are taken"
            for name, amount in wanted.items()
            if name in amounts and not has_room(amount, amounts[name].capacity - used[chosen.node, name])
        ]
        if short:
            refused[row.uuid] = f"the node has no room left: it asks for {'; '.join(short)}"
            continue
        for name, amount in wanted.items():
            used[chosen.node, name] += amount
    return refused

"""The availability zones of hosts, as host aggregates make them."""

from collections.abc import Mapping

from roost.fleet import Fleet
from roost.fleet.columns import Rows
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.scheduler.nodes.table import NodeTable


def zones(table: NodeTable, default: str, fleet: Fleet) -> Mapping[str, Rows]:
    """Return the rows of the nodes in each availability zone, by its name.

    ``default``: the zone of nodes whose aggregates name none. A node whose aggregates name several zones
    counts in the first one.
    """
    rows = fleet.rows()
    roots = rows[fleet.parent[rows] < 0]
    nodes = table.indexes_of_rows(fleet, roots)
    roots, nodes = roots[nodes >= 0], nodes[nodes >= 0]
    labels = table.metadata(AVAILABILITY_ZONE)
    if labels is None:
        return {default: roots} if len(roots) else {}
    number_of: dict[str, int] = {}
    codes = labels.judged(lambda values: number_of.setdefault((*values, default)[0], len(number_of)), nodes)
    found = {name: roots[codes == number] for name, number in number_of.items()}
    return {name: rows for name, rows in sorted(found.items()) if len(rows)}

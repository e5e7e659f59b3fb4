"""The hosts and nodes that a request names: the only ones that it may use, or ones that it must not use.

No filter checks them: the names are part of the request. Names are those of compute services (hosts) and of
their nodes; the case of their letters does not count.

Source: ``HostManager.get_filtered_hosts`` and ``get_compute_nodes_by_host_or_node`` of Nova.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from roost.model.spec import RequestSpec
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.cells import requested_cell
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.table import NodeTable

CHECK_HINT = "_nova_check_type"
"""The scheduler hint that makes filters judge forced hosts as well."""


class RequestedPlace(NamedTuple):
    """Nodes by index that a request allows or excludes.

    ``allowed``: True if only these nodes may be used, False if none of them may. ``step``: the name of the
    step in the record of a run.
    """

    step: str
    nodes: Indexes
    allowed: bool


def is_forced(spec: RequestSpec) -> bool:
    """Return whether the request forces its hosts, so that no filter judges them."""
    return bool(spec.force_hosts or spec.force_nodes) and CHECK_HINT not in spec.scheduler_hints


def target_of(spec: RequestSpec, table: NodeTable) -> Sequence[int] | None:
    """Return the nodes of the one host or node that the request names; None if it names none.

    Raises:
        BadRequestSpec: there is no such host or node.
    """
    destination = spec.requested_destination
    host = destination.host if destination is not None else None
    node = destination.node if destination is not None else None
    if host is None and len(spec.force_hosts) == 1:
        host = spec.force_hosts[0]
    if node is None and len(spec.force_nodes) == 1:
        node = spec.force_nodes[0]
    if host is None and node is None:
        return None
    cell = None if destination is None else requested_cell(destination, table.cells)
    nodes = [index for index in _named(table, host, node) if cell in (None, table.cell.item(index))]
    if not nodes:
        there = None if destination is None else destination.cell or destination.cell_uuid
        what = " ".join(
            f"{kind} {name!r}"
            for kind, name in (("host", host), ("node", node), ("cell", there))
            if name is not None
        )
        raise BadRequestSpec(f"requested {what} is unknown")
    return nodes


def places_of(spec: RequestSpec, table: NodeTable) -> Iterator[RequestedPlace]:
    """Yield the nodes that the request allows or excludes by name; nothing if it names none."""
    destination = spec.requested_destination
    if destination is not None:
        if destination.host is not None or destination.node is not None:
            nodes = _named(table, destination.host, destination.node)
            if len(nodes) > 1:  # Placement is asked for the tree of a single node.
                yield RequestedPlace("requested_destination", _indexes(nodes), True)
        cell = requested_cell(destination, table.cells)
        if cell is not None and not destination.allow_cross_cell_move:
            yield RequestedPlace("requested_cell", np.flatnonzero(table.cell[: table.size] == cell), True)
    if known := _of_hosts(table, sorted(spec.retried_hosts)):
        yield RequestedPlace("retried_hosts", _indexes(known), False)
    if spec.force_hosts:
        yield RequestedPlace("force_hosts", _indexes(_of_hosts(table, spec.force_hosts)), True)
    if spec.force_nodes:
        nodes = [index for name in spec.force_nodes for index in table.indexes_of_requested_nodename(name)]
        yield RequestedPlace("force_nodes", _indexes(nodes), True)


def ignored(spec: RequestSpec, table: NodeTable) -> Iterator[RequestedPlace]:
    """Yield the nodes of the ignored hosts, if there are any."""
    if known := _of_hosts(table, sorted(spec.ignore_hosts)):
        yield RequestedPlace("ignore_hosts", _indexes(known), False)


def _indexes(nodes: Sequence[int]) -> Indexes:
    return np.array(nodes, dtype=np.intp)


def _named(table: NodeTable, host: str | None, node: str | None) -> Sequence[int]:
    if node is None:
        return table.indexes_of_requested_host(host or "")
    nodes = table.indexes_of_requested_nodename(node)
    return [index for index in nodes if host is None or table.hosts[index].lower() == host.lower()]


def _of_hosts(table: NodeTable, hosts: Sequence[str]) -> Sequence[int]:
    return [index for host in hosts for index in table.indexes_of_requested_host(host)]

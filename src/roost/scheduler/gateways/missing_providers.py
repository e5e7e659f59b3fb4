"""Nodes that report while placement is being filled and has no providers for them; refusals that say so."""

from collections.abc import Iterator
from itertools import islice

import msgspec
import structlog

from roost.placement.errors import PlacementError
from roost.scheduler.errors import SchedulerError
from roost.scheduler.gateways.recording_placement import RunPlacement
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.claim_result import one_line, translated
from roost.scheduler.selection.outcome import Outcome


def known_nodes(table: NodeTable) -> Iterator[str]:
    """Yield the root providers of all nodes that report."""
    return (node for node in table.nodes if table.index_of_node(node) is not None)


def being_filled(outcome: Outcome, missing: int, nodes: int) -> Outcome:
    """Return the outcome of a run without a host; its refusal names the nodes without provider."""
    if not missing:
        return outcome
    return msgspec.structs.replace(outcome, refusal=f"{outcome.refusal}; {filling(missing, nodes)}")


def filling(missing: int, nodes: int) -> str:
    """Return a text: so many of the nodes that report have no provider."""
    return f"placement is being filled: {missing} of {nodes} nodes that report have no provider there"


NODES_ASKED = 10
"""Nodes whose providers are read after a refusal, to find out whether placement is being filled."""

_log = structlog.get_logger()


async def nodes_without_provider(placement: RunPlacement, table: NodeTable) -> tuple[int, int]:
    """Return how many of the first nodes have no provider in placement, and how many were read."""
    nodes = list(islice(known_nodes(table), NODES_ASKED))
    try:
        found = [await translated(placement.provider(node)) for node in nodes]
    except (SchedulerError, PlacementError) as error:
        _log.warning("whether placement knows the nodes cannot be read", error=one_line(error))
        return 0, 0
    return found.count(None), len(nodes)

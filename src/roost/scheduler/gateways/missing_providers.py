"""Nodes that report while placement has no providers for them yet."""

from itertools import islice

import structlog

from roost.placement.errors import PlacementError
from roost.scheduler.candidates.unfilled_placement import known_nodes
from roost.scheduler.errors import SchedulerError
from roost.scheduler.gateways.error_translation import translated
from roost.scheduler.gateways.recording_placement import RunPlacement
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.claim_result import one_line

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

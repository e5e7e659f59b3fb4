"""The cells of a cloud with their counts, which all viewers share."""

from collections import Counter
from collections.abc import Iterable

from roost.conductor.hosts.cells import SeenCell
from roost.dashboard.service import CloudReads, DashboardService

FRESH_SECONDS = 2.0
"""Seconds for which the cells are shown again without being read: counting costs an index of instances."""


async def seen_cells(service: DashboardService, cloud: CloudReads) -> list[SeenCell]:
    """Return all cells in order of names. Raises `StorageError` of the API database."""
    return await service.kept("cells", FRESH_SECONDS, cloud.registry.list)


def instances_by_state(cells: Iterable[SeenCell]) -> dict[str, int]:
    """Return the number of instances in each state, of the cells that answer."""
    total: Counter[str] = Counter()
    for cell in cells:
        total.update({} if cell.counts is None else cell.counts.instances)
    return dict(total)

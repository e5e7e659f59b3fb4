"""The hosts of cells that have no host mapping, so that Nova's conductor cannot send instances there."""

from collections.abc import Iterable

import structlog

from roost.nova.cell_feed import CellFeed
from roost.nova.database.aggregates import read_mapped
from roost.storage import Database

NAMED = 5
"""Hosts that a warning names."""

_log = structlog.get_logger()


class HostMappings:
    """The hosts that are ``unmapped``, or mapped to another cell than that of their nodes.

    A warning tells of each host once, until it is mapped.
    """

    def __init__(self, api: Database) -> None:
        self.unmapped: frozenset[str] = frozenset()
        self._api = api

    async def read(self, feeds: Iterable[CellFeed]) -> None:
        """Compare the host mappings with the nodes of cells. Raises `StorageError`."""
        nodes = [(feed.cell.id, feed.hosts) for feed in feeds]
        mapped = await self._api.read(read_mapped())
        unmapped = frozenset(host for cell, hosts in nodes for host in hosts if mapped.get(host) != cell)
        new = sorted(unmapped - self.unmapped)
        self.unmapped = unmapped
        if new:
            _log.warning(
                "compute hosts are not mapped to their cell: Nova ends what is sent there with an error; "
                "run nova-manage cell_v2 discover_hosts",
                hosts=new[:NAMED],
                number=len(unmapped),
            )

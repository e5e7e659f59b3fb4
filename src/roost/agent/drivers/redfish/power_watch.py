"""Polls the power of all nodes.

A node of unknown power is reserved, as in Ironic: its machine may have been switched on meanwhile, or be
gone. After ``failures`` failed reads in a row the power is unknown, until the BMC answers again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from roost.agent.drivers.redfish.bmc import BmcClient, SystemState
from roost.agent.drivers.redfish.errors import BmcFailed, BmcSilent
from roost.agent.drivers.redfish.nodes_file import RedfishNode

_log = structlog.get_logger()


@dataclass(slots=True)
class WatchedNode:
    """A node and its power. ``on``: None while that is unknown.

    ``seen``: the last report of its BMC. ``error``: of the last read; None if that succeeded. ``failures``:
    failed reads since the last success. ``was_on``: the machine was on since it was last switched on; its
    system may have switched it off again at once.
    """

    node: RedfishNode
    bmc: BmcClient
    on: bool | None = None
    seen: SystemState | None = None
    error: str | None = None
    failures: int = 0
    was_on: bool = False

    async def look(self) -> bool | None:
        """Read whether the machine is on; None while that changes. Raises `BmcFailed`."""
        seen = await self.bmc.ask(lambda bmc: bmc.look_at(self.node.system))
        self.seen, self.on, self.error, self.failures = seen, seen.on, None, 0
        self.was_on = self.was_on or seen.on is True
        return seen.on


@dataclass(slots=True)
class _Behind:
    """The nodes behind one BMC, and those whose failure has been logged."""

    endpoint: str
    nodes: list[WatchedNode]
    logged: set[str] = field(default_factory=set)


class Rack:
    """All nodes of a host. ``failures``: failed reads in a row after which a node's power is unknown."""

    def __init__(self, bmcs: Sequence[tuple[str, BmcClient, Sequence[RedfishNode]]], failures: int) -> None:
        self._failures = failures
        self._behind = [
            _Behind(endpoint, [WatchedNode(node, bmc) for node in nodes]) for endpoint, bmc, nodes in bmcs
        ]
        self.nodes = {each.node.uuid: each for behind in self._behind for each in behind.nodes}

    async def look(self) -> None:
        """Read the power of all nodes, concurrently by BMC."""
        await asyncio.gather(*(self._look(behind) for behind in self._behind))

    async def _look(self, behind: _Behind) -> None:
        silent: BmcSilent | None = None
        for each in behind.nodes:
            try:
                if silent is not None:
                    # The other nodes are behind the same silent BMC, and each would wait for the timeout.
                    raise silent
                await each.look()
            except BmcFailed as error:
                silent = error if isinstance(error, BmcSilent) else None
                each.error = str(error)
                each.failures += 1
                if each.failures >= self._failures:
                    each.on = None
        failing = {each.node.entry.name for each in behind.nodes if each.error is not None}
        if fresh := sorted(failing - behind.logged):
            errors = [each.error for each in behind.nodes if each.node.entry.name == fresh[0]]
            _log.warning(
                "a BMC does not tell the power of its nodes",
                bmc=behind.endpoint,
                nodes=", ".join(fresh[:10]),
                number=len(fresh),
                error=errors[0],
            )
        elif behind.logged and not failing:
            _log.warning("a BMC tells the power of its nodes again", bmc=behind.endpoint)
        behind.logged = failing

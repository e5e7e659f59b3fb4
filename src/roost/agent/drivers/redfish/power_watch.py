"""The power of all nodes, seen again and again.

Whose power is not known is not offered, as in Ironic: a machine may have been switched on meanwhile, or be
gone. One failure is no reason yet; after `Rack.failures` of them in a row the power is unknown, until the
BMC answers again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from roost.agent.drivers.redfish.bmc import Line, Seen
from roost.agent.drivers.redfish.errors import BmcFailed, BmcSilent
from roost.agent.drivers.redfish.nodes_file import Node

_log = structlog.get_logger()


@dataclass(slots=True)
class Watched:
    """A node and what is known of its power. ``on``: None while nobody knows.

    ``seen``: what its BMC told last. ``error``: of the last look, None if that had an answer. ``failures``:
    looks without an answer since the last one with an answer. ``was_on``: seen on since it was last asked to
    switch on, which what it boots may end at once.
    """

    node: Node
    line: Line
    on: bool | None = None
    seen: Seen | None = None
    error: str | None = None
    failures: int = 0
    was_on: bool = False

    async def look(self) -> bool | None:
        """Look whether it is on; None while that changes. Raises `BmcFailed`."""
        seen = await self.line.ask(lambda bmc: bmc.look_at(self.node.system))
        self.seen, self.on, self.error, self.failures = seen, seen.on, None, 0
        self.was_on = self.was_on or seen.on is True
        return seen.on


@dataclass(slots=True)
class _Behind:
    """The nodes behind one BMC, and those whose failure has been told."""

    endpoint: str
    nodes: list[Watched]
    told: set[str] = field(default_factory=set)


class Rack:
    """All nodes of a host. ``failures``: so many looks in a row without an answer make a power unknown."""

    def __init__(self, lines: Sequence[tuple[str, Line, Sequence[Node]]], failures: int) -> None:
        self._failures = failures
        self._behind = [
            _Behind(endpoint, [Watched(node, line) for node in nodes]) for endpoint, line, nodes in lines
        ]
        self.nodes = {each.node.uuid: each for behind in self._behind for each in behind.nodes}

    async def look(self) -> None:
        """Look at all nodes, at those of several BMCs at the same time."""
        await asyncio.gather(*(self._look(behind) for behind in self._behind))

    async def _look(self, behind: _Behind) -> None:
        silent: BmcSilent | None = None
        for each in behind.nodes:
            try:
                if silent is not None:
                    # The others are behind the same BMC, and each would take as long.
                    raise silent
                await each.look()
            except BmcFailed as error:
                silent = error if isinstance(error, BmcSilent) else None
                each.error = str(error)
                each.failures += 1
                if each.failures >= self._failures:
                    each.on = None
        failing = {each.node.entry.name for each in behind.nodes if each.error is not None}
        if fresh := sorted(failing - behind.told):
            errors = [each.error for each in behind.nodes if each.node.entry.name == fresh[0]]
            _log.warning(
                "a BMC does not tell the power of its nodes",
                bmc=behind.endpoint,
                nodes=", ".join(fresh[:10]),
                number=len(fresh),
                error=errors[0],
            )
        elif behind.told and not failing:
            _log.warning("a BMC tells the power of its nodes again", bmc=behind.endpoint)
        behind.told = failing

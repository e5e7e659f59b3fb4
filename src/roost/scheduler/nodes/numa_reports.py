"""The NUMA topologies of the nodes' reports, decoded."""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import structlog

from roost.fleet.hardware.host_topology import HostTopology, UnreadableTopology, decoded
from roost.model.node import NodeReport
from roost.scheduler.nodes.cell_numbers import CellNumbers, numbers_of

_log = structlog.get_logger()


class _Decoded(NamedTuple):
    topology: HostTopology
    numbers: tuple[CellNumbers, ...]


class NumaReports:
    """The topology that each node reports, by index in the node table.

    A report is decoded once, by `decode` or at the first read of its topology. A topology is the same object
    until the node reports another one.
    """

    def __init__(self) -> None:
        self._decoded: dict[int, _Decoded] = {}
        # Reports that are not decoded yet.
        self._waiting: dict[int, NodeReport] = {}

    def put(self, index: int, report: NodeReport) -> None:
        """Take in the report of a node whose topology has changed."""
        self._decoded.pop(index, None)
        if report.numa_topology:
            self._waiting[index] = report
        else:
            self._waiting.pop(index, None)

    def of(self, index: int) -> HostTopology | None:
        """Return the topology of a node; None if it reports none that can be read."""
        found = self._of(index)
        return None if found is None else found.topology

    def numbers(self, index: int) -> Sequence[CellNumbers]:
        """Return the numbers of the cells of a node's topology."""
        found = self._of(index)
        return () if found is None else found.numbers

    def _of(self, index: int) -> _Decoded | None:
        report = self._waiting.get(index)
        if report is not None:
            topology = _decoded(report)
            if topology is not None:
                numbers = tuple([numbers_of(cell) for cell in topology.cells])
                self._decoded[index] = _Decoded(topology, numbers)
            # After the result is stored: another thread must not see a report without a topology.
            self._waiting.pop(index, None)
        return self._decoded.get(index)

    def decode(self, most: int) -> int:
        """Decode reports that are not decoded yet, ``most`` at most. Returns their number."""
        indexes = list(islice(self._waiting, most))
        for index in indexes:
            self.of(index)
        return len(indexes)


def _decoded(report: NodeReport) -> HostTopology | None:
    try:
        topology = decoded(report.numa_topology or {})
    except UnreadableTopology as error:
        _log.warning(
            "the NUMA topology of a node cannot be read: it takes no instance that asks for one",
            host=report.host,
            nodename=report.nodename,
            error=str(error),
        )
        return None
    return topology if topology.cells else None

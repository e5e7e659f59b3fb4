"""The host table: what every host reports, as columns."""

import math
from collections.abc import Iterable

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Float64, Int32, grown
from roost.model.host import HostReport


class HostTable:
    """Every host that some agent has reported. A host's *index* is its place here, for as long as the
    table lives; ties between equal hosts go to the lower index.

    Columns by index: ``cell`` int32 (number of the cell in ``cells``), ``enabled`` bool, ``last_seen``
    float64 seconds since the epoch, ``failed_builds`` float64.
    """

    def __init__(self, reports: Iterable[HostReport] = ()) -> None:
        self.cells: list[str] = []
        self.names: list[str] = []
        self.nodes: list[str] = []
        self.cell: Int32 = np.zeros(0, dtype=np.int32)
        self.enabled: Bools = np.zeros(0, dtype=np.bool_)
        self.last_seen: Float64 = np.zeros(0, dtype=np.float64)
        self.failed_builds: Float64 = np.zeros(0, dtype=np.float64)
        self._reports: list[HostReport] = []
        self._index: dict[str, int] = {}
        self._index_of_node: dict[str, int] = {}
        self._metrics: dict[str, Float64] = {}
        self._metadata: dict[str, dict[int, tuple[str, ...]]] = {}
        self._at_row: Int32 = np.zeros(0, dtype=np.int32)
        self._at_row_of: tuple[int, ...] = ()
        self.update(reports)

    def __len__(self) -> int:
        return len(self.names)

    def index(self, host: str) -> int | None:
        """The index of a host by name, None if it is unknown."""
        return self._index.get(host)

    def index_of_node(self, node: str) -> int | None:
        """The index of the host whose root provider has this uuid, None if there is none."""
        return self._index_of_node.get(node)

    def indexes_of_rows(self, fleet: Fleet, rows: Int32) -> Int32:
        """The host at each row of the fleet: int32[len(rows)], -1 where no host has that root provider."""
        stamp = (id(fleet), fleet.roster, len(self))
        if self._at_row_of != stamp:
            at_row = np.full(fleet.n_rows, -1, dtype=np.int32)
            for index, node in enumerate(self.nodes):
                if node in fleet:
                    at_row[fleet.row(node)] = index
            self._at_row, self._at_row_of = at_row, stamp
        return self._at_row[rows]

    def update(self, reports: Iterable[HostReport]) -> None:
        """Take in what agents report; a host reported before is updated."""
        for report in reports:
            index = self._index.get(report.host)
            if index is None:
                index = self._append(report)
            elif self._reports[index].node != report.node:
                del self._index_of_node[self._reports[index].node]
                self._at_row_of = ()
            old = self._reports[index]
            self.nodes[index] = report.node
            self._index_of_node[report.node] = index
            self.cell[index] = self._cell_number(report.cell)
            self.enabled[index] = report.enabled
            self.last_seen[index] = report.last_seen
            self.failed_builds[index] = report.failed_builds
            if report.metrics != old.metrics or old is report:
                self._set_metrics(index, report.metrics)
            if report.aggregates != old.aggregates or old is report:
                self._set_metadata(index, report)
            self._reports[index] = report

    def metric(self, name: str) -> Float64:
        """A metric of every host: float64[len(self)], NaN where a host does not report it."""
        column = self._metrics.get(name)
        if column is None:
            return np.full(len(self), math.nan)
        return column[: len(self)]

    def metadata(self, key: str) -> dict[int, tuple[str, ...]]:
        """The values of an aggregate metadata key: host index -> the values of its aggregates."""
        return self._metadata.get(key, {})

    def metadata_keys(self) -> Iterable[str]:
        """All aggregate metadata keys that some host has."""
        return self._metadata.keys()

    def aggregates_with(self, key: str, value: str) -> frozenset[str]:
        """The uuids of the aggregates whose metadata has ``key`` equal to ``value``."""
        return frozenset(
            aggregate.uuid
            for index in self.metadata(key)
            for aggregate in self._reports[index].aggregates
            if aggregate.metadata.get(key) == value
        )

    def report(self, index: int) -> HostReport:
        """What a host last reported."""
        return self._reports[index]

    def _append(self, report: HostReport) -> int:
        index = len(self.names)
        self.names.append(report.host)
        self.nodes.append(report.node)
        self._reports.append(report)
        self._index[report.host] = index
        self.cell = grown(self.cell, index + 1, 0)
        self.enabled = grown(self.enabled, index + 1, False)
        self.last_seen = grown(self.last_seen, index + 1, 0.0)
        self.failed_builds = grown(self.failed_builds, index + 1, 0.0)
        for name, column in self._metrics.items():
            self._metrics[name] = grown(column, index + 1, math.nan)
        return index

    def _cell_number(self, cell: str) -> int:
        if cell not in self.cells:
            self.cells.append(cell)
        return self.cells.index(cell)

    def _set_metrics(self, index: int, metrics: dict[str, float]) -> None:
        for name in self._metrics.keys() | metrics.keys():
            column = grown(self._metrics.get(name, np.zeros(0)), len(self.cell), math.nan)
            column[index] = metrics.get(name, math.nan)
            self._metrics[name] = column

    def _set_metadata(self, index: int, report: HostReport) -> None:
        values: dict[str, tuple[str, ...]] = {}
        for aggregate in report.aggregates:
            for key, value in aggregate.metadata.items():
                values[key] = (*values.get(key, ()), value)
        for key in self._metadata.keys() - values.keys():
            self._metadata[key].pop(index, None)
        for key, of_host in values.items():
            self._metadata.setdefault(key, {})[index] = of_host

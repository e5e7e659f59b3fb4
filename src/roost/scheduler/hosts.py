"""The host table: what every host reports, as columns."""

import math
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Float64, Int32, Rows, grown
from roost.fleet.invalidation_log import InvalidationLog
from roost.model.host import HostAggregate, HostReport
from roost.scheduler.heartbeats import Heartbeats
from roost.scheduler.labels import Labels


class HostTable:
    """Every host that some agent has reported. A host's *index* is its place here, for as long as the
    table lives; ties between equal hosts go to the lower index.

    Columns by index: ``cell`` int32 (number of the cell in ``cells``), ``enabled`` bool, ``last_seen``
    float64 seconds since the epoch, ``failed_builds`` float64. They have room to spare at the end.

    For caches: ``invalidations`` has the hosts whose reports have changed, where a heartbeat counts only if
    it makes a host alive again (see `seen_since`). ``structure`` rises when caches must begin anew: a host
    came, or went to another cell or root provider, or a metadata key came or went.
    """

    def __init__(self, reports: Iterable[HostReport] = ()) -> None:
        self.invalidations = InvalidationLog()
        self.structure = 0
        self.cells: list[str] = []
        self.names: list[str] = []
        self.nodes: list[str] = []
        self.cell: Int32 = np.zeros(0, dtype=np.int32)
        self.enabled: Bools = np.zeros(0, dtype=np.bool_)
        self.failed_builds: Float64 = np.zeros(0, dtype=np.float64)
        self._heartbeats = Heartbeats(self.invalidations)
        self._failing = 0
        self._reports: list[HostReport] = []
        self._index: dict[str, int] = {}
        self._index_of_node: dict[str, int] = {}
        self._number_of_cell: dict[str, int] = {}
        self._metrics: dict[str, Float64] = {}
        self._labels: dict[str, Labels] = {}
        self._aggregates: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._at_row: Rows = np.zeros(0, dtype=np.intp)
        self._fleet: weakref.ref[Fleet] | None = None
        self._roster = 0
        self.update(reports)

    def __len__(self) -> int:
        return len(self.names)

    def index(self, host: str) -> int | None:
        """The index of a host by name, None if it is unknown."""
        return self._index.get(host)

    def index_of_node(self, node: str) -> int | None:
        """The index of the host whose root provider has this uuid, None if there is none."""
        return self._index_of_node.get(node)

    def indexes_of_rows(self, fleet: Fleet, rows: Rows) -> Rows:
        """The host at each row of the fleet: int32[len(rows)], -1 where no host has that root provider."""
        if self._fleet is None or self._fleet() is not fleet or self._roster != fleet.provider_set_version:
            self._at_row = np.full(fleet.n_rows, -1, dtype=np.intp)
            for node, index in self._index_of_node.items():
                if node in fleet:
                    self._at_row[fleet.row(node)] = index
            self._fleet, self._roster = weakref.ref(fleet), fleet.provider_set_version
        return self._at_row.take(rows)

    def update(self, reports: Iterable[HostReport]) -> None:
        """Take in what agents report; a host reported before is updated.

        Where two hosts name the same root provider it is the one's that named it last.
        """
        for report in reports:
            index = self._index.get(report.host)
            old = None if index is None else self._reports[index]
            if index is None:
                index = self._append(report)
            if old is None or report.node != old.node or report.node not in self._index_of_node:
                self._set_node(index, old, report.node)
            if old is None or report.cell != old.cell:
                self.cell[index] = self._cell_number(report.cell)
                self.structure += 1
            self._heartbeats.put(index, report.last_seen)
            self.enabled[index] = report.enabled
            self.failed_builds[index] = report.failed_builds
            if old is not None:
                self._failing -= old.failed_builds != 0
                if _changed(old, report):
                    self.invalidations.append(index)
            self._failing += report.failed_builds != 0
            if old is None or report.metrics != old.metrics:
                self._set_metrics(index, report.metrics)
            if old is None or report.aggregates != old.aggregates:
                self._set_aggregates(index, old.aggregates if old is not None else (), report.aggregates)
            self._reports[index] = report

    @property
    def last_seen(self) -> Float64:
        """The last heartbeat of each host."""
        return self._heartbeats.last_seen

    def seen_since(self, oldest: float) -> Bools:
        """Which hosts were seen at ``oldest`` (seconds since the epoch) or after it: bool by index."""
        return self._heartbeats.since(oldest)

    @property
    def any_failed_builds(self) -> bool:
        """Whether ``failed_builds`` is anything but 0 somewhere."""
        return self._failing > 0

    def metric(self, name: str) -> Float64:
        """A metric of every host: float64[len(self)], NaN where a host does not report it."""
        column = self._metrics.get(name)
        if column is None:
            return np.full(len(self), math.nan)
        return column[: len(self)]

    def metadata(self, key: str) -> Labels | None:
        """The values of an aggregate metadata key by host; None if no host is in an aggregate that has it."""
        return self._labels.get(key)

    def aggregates_with(self, key: str, value: str) -> frozenset[str]:
        """The uuids of the aggregates whose metadata has ``key`` equal to ``value``."""
        return frozenset(self._aggregates.get((key, value), ()))

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
        self.failed_builds = grown(self.failed_builds, index + 1, 0.0)
        for name, column in self._metrics.items():
            self._metrics[name] = grown(column, index + 1, math.nan)
        return index

    def _cell_number(self, cell: str) -> int:
        number = self._number_of_cell.setdefault(cell, len(self.cells))
        if number == len(self.cells):
            self.cells.append(cell)
        return number

    def _set_node(self, index: int, old: HostReport | None, node: str) -> None:
        if old is not None and self._index_of_node.get(old.node) == index:
            del self._index_of_node[old.node]
        self.nodes[index] = node
        self._index_of_node[node] = index
        self._fleet = None
        self.structure += 1

    def _set_metrics(self, index: int, metrics: dict[str, float]) -> None:
        """A number that is not finite is as good as none: nothing could be weighed by it."""
        for name in self._metrics.keys() | metrics.keys():
            column = grown(self._metrics.get(name, np.zeros(0)), len(self.cell), math.nan)
            value = metrics.get(name, math.nan)
            column[index] = value if math.isfinite(value) else math.nan
            self._metrics[name] = column

    def _set_aggregates(
        self, index: int, old: tuple[HostAggregate, ...], new: tuple[HostAggregate, ...]
    ) -> None:
        before, after = _values(old), _values(new)
        for key in before.keys() | after.keys():
            labels = self._labels.get(key)
            if labels is None:
                labels = self._labels[key] = Labels()
                self.structure += 1
            labels.put(index, after.get(key, ()))
            if not labels.labelled:
                del self._labels[key]
                self.structure += 1
        for aggregate in old:
            for named in aggregate.metadata.items():
                self._aggregates[named][aggregate.uuid] -= 1
                if not self._aggregates[named][aggregate.uuid]:
                    del self._aggregates[named][aggregate.uuid]
        for aggregate in new:
            for named in aggregate.metadata.items():
                self._aggregates[named][aggregate.uuid] += 1


def _changed(old: HostReport, new: HostReport) -> bool:
    """Whether anything but the heartbeat is different that a plugin may look at."""
    return (
        new.enabled != old.enabled
        or new.failed_builds != old.failed_builds
        or new.metrics != old.metrics
        or new.aggregates != old.aggregates
    )


def _values(aggregates: Iterable[HostAggregate]) -> dict[str, tuple[str, ...]]:
    """The values of each metadata key, in the order of the aggregates."""
    values: dict[str, tuple[str, ...]] = {}
    for aggregate in aggregates:
        for key, value in aggregate.metadata.items():
            values[key] = (*values.get(key, ()), value)
    return values

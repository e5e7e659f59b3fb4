"""The metrics that nodes report, one column each."""

import math
from collections.abc import Mapping

import numpy as np

from roost.fleet.columns import Float64, grown


class MetricColumns:
    """One column for each metric that some node reports: float64 by node index, NaN where not reported.

    A number that is not finite counts as not reported: no weigher could use it.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Float64] = {}
        self._reporters: dict[str, int] = {}

    def of(self, name: str, size: int) -> Float64:
        """Return the column of a metric: float64[size]."""
        column = self._columns.get(name)
        if column is None:
            return np.full(size, math.nan)
        if len(column) < size:
            column = self._columns[name] = grown(column, size, math.nan)
        return column[:size]

    def put(self, index: int, old: Mapping[str, float], new: Mapping[str, float]) -> None:
        """Set the metrics of a node that had ``old``."""
        for name, value in new.items():
            if name not in old:
                self._reporters[name] = self._reporters.get(name, 0) + 1
            column = grown(self._columns.get(name, np.zeros(0)), index + 1, math.nan)
            column[index] = value if math.isfinite(value) else math.nan
            self._columns[name] = column
        for name in old:
            if name not in new:
                self._reporters[name] -= 1
                if self._reporters[name]:
                    self._columns[name][index] = math.nan
                else:
                    del self._reporters[name], self._columns[name]

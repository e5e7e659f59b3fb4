"""Types of numpy columns, and columns that grow.

A growing column is an array longer than the rows in use. Growing at least doubles it, so that appending a row
takes constant time on average. Growing makes a new array: callers must not keep the old one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
"""Rows or slots during a query, as platform integers. Stored columns are int32, but numpy converts an index
of any other type at each gather, which takes three times as long as the gather."""
NO_ROWS: Rows = np.zeros(0, dtype=np.intp)
Float64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def grown(column: npt.NDArray[Any], size: int, fill: Any) -> npt.NDArray[Any]:
    """Return ``column`` with room for at least ``size`` rows, new rows set to ``fill``."""
    if size <= len(column):
        return column
    larger = np.full(max(size, 2 * len(column), 16), fill, dtype=column.dtype)
    larger[: len(column)] = column
    return larger


_PEELED = 16
"""Values that are taken out one by one before the rest is sorted. Most trees of a fleet are alike, and to
compare a column with a number takes a fiftieth of the time of sorting it."""


def distinct(values: Int64) -> tuple[list[int], Rows]:
    """Return the distinct values in no order, and the index of each value among them: intp[len(values)]."""
    found: list[int] = []
    places: Rows = np.zeros(len(values), dtype=np.intp)
    left: Rows = np.arange(len(values))
    while len(values) and len(found) < _PEELED:
        same = values == values[0]
        found.append(int(values[0]))
        if same.all():
            places[left] = len(found) - 1
            return found, places
        places[left[same]] = len(found) - 1
        left, values = left[~same], values[~same]
    if len(values):
        rest, inverse = np.unique(values, return_inverse=True)
        places[left] = inverse + len(found)
        found += rest.tolist()
    return found, places


def largest(values: Float64, number: int) -> Rows:
    """Return the places of the ``number`` largest values, largest first, equal ones in their order: intp."""
    if number >= len(values):
        return np.argsort(-values, kind="stable")
    least = np.partition(values, len(values) - number)[len(values) - number]
    among = np.flatnonzero(values >= least)
    return among[np.argsort(-values[among], kind="stable")][:number]

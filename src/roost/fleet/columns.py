"""Numpy columns grown in place.

A column is an array with room to spare: growing doubles the room, so that appending row after row costs
constant time each. Holders index the column directly and must not keep the array over a growth.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
"""Rows or slots on their way through a query. Columns that stay hold int32; a gather by anything but
platform integers converts its indexes each time, which costs three times the gather."""
Float64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def grown(column: npt.NDArray[Any], size: int, fill: Any) -> npt.NDArray[Any]:
    """``column`` with room for at least ``size`` rows, new rows set to ``fill``."""
    if size <= len(column):
        return column
    larger = np.full(max(size, 2 * len(column), 16), fill, dtype=column.dtype)
    larger[: len(column)] = column
    return larger

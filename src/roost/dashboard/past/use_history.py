"""Use, capacity and claims at many times, by the index: the totals of now less all later steps."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from roost.dashboard.past.index_block import IndexBlock
from roost.dashboard.past.index_view import IndexView
from roost.fleet.columns import Float64, Int64


class UseHistory(NamedTuple):
    """Totals of each class at some times, float64[n], and the consumers that came in the step before each.

    ``since``: the time from which on the index has commits, in seconds since the epoch; values of earlier
    times mean nothing.
    """

    since: float
    used: Mapping[str, Float64]
    capacity: Mapping[str, Float64]
    created: Float64


def use_history(
    view: IndexView, totals: Mapping[str, tuple[int, int]], version: int, times: Sequence[float]
) -> UseHistory:
    """Return the use at some times.

    ``totals``: used and capacity of each class at ``version``. ``times``: ascending, at equal distances.
    """
    n = len(times)
    at = np.asarray(times, dtype=np.float64)
    sums = {name: np.zeros((2, n + 1)) for name in totals}
    created = np.zeros(n + 1)
    for block in view.blocks:
        if block.first > version:
            break
        stamps = np.ascontiguousarray(block.stamps["at"])
        end = min(block.last, version) - block.first + 1
        if not len(stamps) or stamps[:end].max() < at[0]:
            continue
        # A commit counts for all times from the first one on that is not before it.
        place = np.searchsorted(at, stamps[:end], side="left")
        created += np.bincount(place, weights=block.stamps["created"][:end], minlength=n + 1)
        _add(block, "uses", "step", place, sums, 0)
        _add(block, "inventories", "capacity", place, sums, 1)
    # Each step that comes after a time is taken from the totals of now.
    values = {
        name: np.asarray(totals[name], dtype=np.float64)[:, None] - _after(found)
        for name, found in sums.items()
    }
    return UseHistory(
        since=float(view.blocks[0].stamps["at"][0]) if view.blocks else float("inf"),
        used={name: found[0] for name, found in values.items()},
        capacity={name: found[1] for name, found in values.items()},
        created=created[:n],
    )


def _after(sums: Float64) -> Float64:
    """Return for each time the sum of what comes after it: float64[2, n]."""
    found: Float64 = np.cumsum(sums[:, ::-1], axis=1)[:, ::-1][:, 1:]
    return found


def _add(
    block: IndexBlock, table: str, column: str, place: Int64, sums: Mapping[str, Float64], row: int
) -> None:
    steps = getattr(block, table)
    steps = steps[: int(np.searchsorted(steps["offset"], np.uint32(len(place))))]
    if not len(steps):
        return
    width = sums[next(iter(sums))].shape[1] if sums else 0
    code = steps["resource_class"].astype(np.intp) * width + place[steps["offset"]]
    found = np.bincount(code, weights=steps[column], minlength=width * len(block.classes))
    for number, name in enumerate(block.classes):
        if name in sums:
            sums[name][row] += found[number * width : (number + 1) * width]

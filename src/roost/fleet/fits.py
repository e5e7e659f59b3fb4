"""The rule that decides whether an amount fits an inventory. No other code decides it.

The rule has two parts. *Room*: the amount is at most what is free, capacity less use. *Units*: the amount
is within ``min_unit`` and ``max_unit`` and a multiple of ``step_size``. Candidates, claims, what-if
queries, explanations, imports and ``db verify`` call `fits` or one of its parts.

All functions but `violated_unit` take Python numbers or numpy columns (of equal length) alike, so that one
expression decides for one provider and for a million.

Source: ``placement.objects.allocation`` upstream, which checks each allocation of a claim in this way.
"""

from typing import Any, Literal

import numpy as np

Unit = Literal["min_unit", "max_unit", "step_size"]
"""A limit of an inventory on a single allocation."""


def fits(amount: int, used: Any, capacity: Any, min_unit: Any, max_unit: Any, step_size: Any) -> Any:
    """Return whether ``amount`` more units may be allocated: bool, or bool[n] for columns."""
    # `has_room` and `meets_units` in one expression: a decision needs it a dozen times, and calls cost more.
    return (
        (capacity - used >= amount) & (min_unit <= amount) & (max_unit >= amount) & (amount % step_size == 0)
    )


def has_room(amount: Any, free: Any) -> Any:
    """Return whether ``amount`` is at most ``free``: the capacity less the use, which may be negative."""
    return free >= amount


def meets_units(amount: Any, min_unit: Any, max_unit: Any, step_size: Any) -> Any:
    """Return whether one allocation of ``amount`` respects ``min_unit``, ``max_unit`` and ``step_size``."""
    return (min_unit <= amount) & (max_unit >= amount) & (amount % step_size == 0)


def largest_amount(free: Any, max_unit: Any) -> Any:
    """Return the largest amount that room and ``max_unit`` allow, at least 0. Other units may forbid it."""
    return np.maximum(np.minimum(free, max_unit), 0)


def largest_part(amount: Any, free: Any, min_unit: Any, max_unit: Any, step_size: Any) -> Any:
    """Return the largest part of ``amount`` that may be allocated, 0 if none: numpy numbers."""
    part = np.minimum(largest_amount(free, max_unit), amount)
    part = part - part % step_size
    return np.where(part >= min_unit, part, 0)


def violated_unit(amount: int, min_unit: int, max_unit: int, step_size: int) -> Unit | None:
    """Return the limit that ``amount`` violates, None if `meets_units` holds. Only for single numbers."""
    if amount > max_unit:
        return "max_unit"
    if amount < min_unit:
        return "min_unit"
    return "step_size" if amount % step_size else None

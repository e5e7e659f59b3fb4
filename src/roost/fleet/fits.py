"""The one judge of "does it fit?".

Candidates, the claim check, what-if, explain and verify all call `fits`. It is written with operators
that mean the same on Python numbers and on numpy columns, so that one provider and a million are judged
by the same line.
"""

from typing import Any


def fits(amount: int, used: Any, capacity: Any, min_unit: Any, max_unit: Any, step_size: Any) -> Any:
    """Whether ``amount`` more units fit, for one inventory or for columns of them (bool or bool[n]).

    Placement's rule: used + amount <= capacity, min_unit <= amount <= max_unit, and amount is a multiple
    of step_size.
    """
    return (
        (used <= capacity - amount) & (min_unit <= amount) & (max_unit >= amount) & (amount % step_size == 0)
    )

"""What a benchmark measures now, for its command to show."""

import sys
from collections.abc import Callable

Show = Callable[[str, str, int, int | None, str], None]
"""Called with the step, the unit of the numbers, the number done, the total if it is known, and a detail."""


class _Shown:
    """The step that is measured now, and the function that shows it; None: lines on standard error."""

    show: Show | None = None
    step = ""


def show_with(show: Show | None) -> None:
    """Have the progress of this process's benchmarks shown by a function; None: by lines."""
    _Shown.show = show


def announce(step: str) -> None:
    """Tell what is measured from now on; a benchmark takes minutes."""
    _Shown.step = step
    if _Shown.show is None:
        print(f"roost: {step}", file=sys.stderr, flush=True)
    else:
        _Shown.show(step, "rounds", 0, None, "")


def announce_round(done: int, total: int, service: str, per_second: float) -> None:
    """Tell the rate that a service had in a round."""
    if _Shown.show is not None:
        _Shown.show(_Shown.step, "rounds", done, total, f"{service} {per_second:,.0f} requests/s")

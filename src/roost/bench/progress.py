"""The current step of a benchmark, for the progress of its command."""

import sys
from collections.abc import Callable

Show = Callable[[str, str, int, int | None, str], None]
"""Called with the step, the unit of the numbers, the number done, the total or None, and a detail."""


class _Shown:
    """The current step, and the function that shows it; None: lines on standard error."""

    show: Show | None = None
    step = ""


def show_with(show: Show | None) -> None:
    """Set the function that shows the progress of benchmarks in this process; None: lines."""
    _Shown.show = show


def announce(step: str) -> None:
    """Show the step that is measured from now on; a benchmark takes minutes."""
    _Shown.step = step
    if _Shown.show is None:
        print(f"roost: {step}", file=sys.stderr, flush=True)
    else:
        _Shown.show(step, "rounds", 0, None, "")


def announce_round(done: int, total: int, service: str, per_second: float) -> None:
    """Show the rate of a service in a round."""
    if _Shown.show is not None:
        _Shown.show(_Shown.step, "rounds", done, total, f"{service} {per_second:,.0f} requests/s")

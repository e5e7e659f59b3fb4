"""Shares as text: bars, an eighth of a character exact, and percents."""

from typing import Final

WIDTH: Final = 20
"""Characters of a whole bar."""

_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int = WIDTH) -> str:
    """Return a share from 0 to 1 as a bar; what is more than nothing is at least an eighth of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + _EIGHTHS[rest] * (rest > 0)


def bar_of(part: int, whole: int, width: int = WIDTH) -> str:
    """Return a part of a number as a bar; none of nothing."""
    return bar(part / whole, width) if whole else ""


def percent(part: int, whole: int) -> str:
    """Return a part of a number as a percent. 0% means nothing, and 100% that nothing is left.

    A whole of 0 counts as 1.
    """
    share = part / max(whole, 1)
    if 0 < share < 0.01:
        return "<1%"
    return "99%" if 0.99 < share < 1 else f"{share:.0%}"

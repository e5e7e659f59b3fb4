"""Times and durations in words."""

from datetime import UTC, datetime

import htpy as h


def weekday_moment(at: float | None) -> h.Node:
    """Return a time with its weekday, in UTC; a dash for None."""
    if at is None:
        return "–"
    when = datetime.fromtimestamp(at, UTC)
    return h.time(".nowrap", datetime=when.isoformat())[f"{when:%a %Y-%m-%d %H:%M:%S}"]


def duration(seconds: float) -> str:
    """Return a duration in its two largest units."""
    left = max(0, round(seconds))
    if seconds < 0.001:
        return "under 1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not part.startswith("0 "))

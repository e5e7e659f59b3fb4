"""Times that people write: as ISO 8601, or in seconds since 1970."""

from datetime import UTC, datetime

from roost.web.errors import BadRequest

EARLIEST = 1e9
"""Seconds since 1970 of the earliest time where a number may be a commit's too: a smaller one is a commit."""


def read_moment(text: str, earliest: float = EARLIEST) -> float:
    """Return a time in seconds since 1970. One without a zone is in UTC. Raises `BadRequest`."""
    try:
        number = float(text)
    except ValueError:
        return _iso(text)
    if not earliest <= number <= 1e12:
        raise BadRequest(f"{text[:40]!r} is no time: write 2026-07-21 14:05, or seconds since 1970.")
    return number


def _iso(text: str) -> float:
    try:
        when = datetime.fromisoformat(text.strip())
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise BadRequest(
            f"{text[:40]!r} is no time: write 2026-07-21 14:05, or seconds since 1970."
        ) from None

"""Numbers, times, names and amounts as text."""

from datetime import UTC, datetime

import htpy as h

_UNITS = {"MEMORY_MB": ("MiB", 1024**2), "DISK_GB": ("GiB", 1024**3)}
"""Unit of a class in bytes: amounts of these are shown in the largest unit that fits."""

_NAMES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def number(value: float) -> str:
    """Return a number with separators between thousands."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def counted(count: int, one: str, several: str | None = None) -> str:
    """Return a number of things. ``several``: the word for more than one, by default with an s."""
    return f"{number(count)} {one if count == 1 else several or f'{one}s'}"


def amount(resource_class: str, value: int) -> str:
    """Return an amount of a class with its unit."""
    unit = _UNITS.get(resource_class)
    if unit is None:
        return number(value)
    size, step = float(value) * unit[1], 0
    while abs(size) >= 1024 and step < len(_NAMES) - 1:
        size, step = size / 1024, step + 1
    return (
        f"{size:,.0f} {_NAMES[step]}" if size >= 100 or size == int(size) else f"{size:,.1f} {_NAMES[step]}"
    )


def sentence(text: str) -> str:
    """Return a text as a sentence: it begins with a capital and ends with a stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def percent(used: float, capacity: float) -> str:
    """Return a share in percent; a dash without capacity."""
    return f"{100 * used / capacity:.0f} %" if capacity > 0 else "–"


def text_of_moment(at: float) -> str:
    """Return a time as text, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def moment(at: float | None) -> h.Node:
    """Return a time, in UTC; a dash for None."""
    if at is None:
        return "–"
    return h.time(datetime=datetime.fromtimestamp(at, UTC).isoformat())[text_of_moment(at)]


def name(text: str | None) -> h.Node:
    """Return a name as it was given, whatever its direction of writing; a dash without one."""
    return h.bdi[text] if text else "–"

"""Sets of processor numbers as text: ``0-7,^3`` is all from 0 to 7 but 3."""

import re

_PART = re.compile(r"\s*(\^)?\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")
MOST = 10_000
"""Most processors in one range; a longer range is refused, because it is costly to read."""


def cpu_set(text: str) -> frozenset[int]:
    """Return the processors that a text names; parts that begin with ``^`` are left out of the others.

    Raises:
        ValueError: the text is no set of processors.
    """
    named: set[int] = set()
    left_out: set[int] = set()
    for part in text.split(","):
        if not part.strip():
            continue
        found = _PART.fullmatch(part)
        if found is None:
            raise ValueError(f"{part.strip()!r} is no number or range of processors")
        first = int(found[2])
        last = first if found[3] is None else int(found[3])
        if not first <= last < first + MOST:
            raise ValueError(f"{part.strip()!r} is no range of up to {MOST} processors")
        (left_out if found[1] else named).update(range(first, last + 1))
    return frozenset(named - left_out)

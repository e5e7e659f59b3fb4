"""Folds names that differ in a number only: ``compute-007``, ``compute-008`` become ``compute-[007-008]``.

A refusal may name thousands of hosts, and most host names of a cloud are numbered.
"""

import re
from collections.abc import Iterable, Iterator

from roost.model.reasons import HostNames

_NUMBERED = re.compile(r"([^\[\]]*?)([0-9]{1,15})([^0-9\[\]]*)")
_FOLDED = re.compile(r"([^\[\]]*)\[([0-9,-]+)\]([^\[\]]*)")


def folded(names: Iterable[str]) -> tuple[str, ...]:
    """Return names folded by their last number, sorted. Duplicates count once."""
    plain: set[str] = set()
    numbers: dict[tuple[str, str], set[str]] = {}
    for name in names:
        found = _NUMBERED.fullmatch(name)
        if found is None:
            plain.add(name)
        else:
            before, digits, after = found.groups()
            numbers.setdefault((before, after), set()).add(digits)
    made = [
        f"{before}{ranges}{after}"
        for (before, after), all_of in numbers.items()
        for ranges in _ranges(all_of)
    ]
    return tuple(sorted((*plain, *made)))


def unfolded(names: Iterable[str]) -> Iterator[str]:
    """Yield the names that `folded` was given."""
    for name in names:
        found = _FOLDED.fullmatch(name)
        if found is None:
            yield name
            continue
        before, ranges, after = found.groups()
        for each in ranges.split(","):
            first, _, last = each.partition("-")
            for number in range(int(first), int(last or first) + 1):
                yield f"{before}{number:0{len(first)}}{after}"


def host_names(names: Iterable[str], left_out: int = 0) -> HostNames:
    """Return the folded names of hosts. ``left_out``: the number of further hosts, which are not named."""
    return HostNames(folded(names), left_out)


def _ranges(digits: set[str]) -> Iterator[str]:
    """Yield numbers as ranges. Numbers with leading zeros are grouped by their width."""
    by_width: dict[int, list[int]] = {}
    padded = any(len(each) > 1 and each[0] == "0" for each in digits)
    for each in digits:
        by_width.setdefault(len(each) if padded else 1, []).append(int(each))
    for width, values in sorted(by_width.items()):
        ranges: list[tuple[int, int]] = []
        for value in sorted(values):
            if ranges and ranges[-1][1] == value - 1:
                ranges[-1] = ranges[-1][0], value
            else:
                ranges.append((value, value))
        texts = (
            f"{first:0{width}}" if first == last else f"{first:0{width}}-{last:0{width}}"
            for first, last in ranges
        )
        yield f"[{','.join(texts)}]" if len(values) > 1 else f"{values[0]:0{width}}"

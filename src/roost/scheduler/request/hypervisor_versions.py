"""Versions of hypervisors, as numbers such as 8002001 for 8.2.1, and the requirements of images on them."""

import operator
import re
from collections.abc import Callable, Sequence
from typing import Final

_COMPARISONS: Final[dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}
_PART = re.compile(r"\s*(<=|>=|<|>|!=|==)\s*(\d+(?:\.\d+)*)\s*")

Requirement = tuple[tuple[str, tuple[int, ...]], ...]
"""Comparisons that a version must satisfy, all of them."""


def requirement_of(text: str) -> Requirement:
    """Return a requirement such as ``>=8.0, <9`` as comparisons.

    Raises:
        ValueError: it is none.
    """
    parts = [_PART.fullmatch(part) for part in text.split(",")]
    if not all(parts):
        raise ValueError(f"{text!r} is no requirement of a version, such as '>=8.0, <9'")
    return tuple((part[1], _normal(list(map(int, part[2].split("."))))) for part in parts if part is not None)


def satisfies(version: int, requirement: Requirement) -> bool:
    """Return whether a version, three decimal digits a part, satisfies a requirement."""
    parts: list[int] = []
    while version:
        version, part = divmod(version, 1000)
        parts.insert(0, part)
    ours = _normal(parts)
    return all(_COMPARISONS[comparison](ours, theirs) for comparison, theirs in requirement)


def _normal(parts: Sequence[int]) -> tuple[int, ...]:
    """Return a version without zeros at the end: 8.0 is 8."""
    end = len(parts)
    while end > 1 and parts[end - 1] == 0:
        end -= 1
    return tuple(parts[:end])

"""Numbers that aggregate metadata has in place of an option."""

from collections.abc import Sequence
from functools import lru_cache


def least_integer(values: Sequence[str], configured: int) -> int:
    """The least of the aggregates' integers, ``configured`` if there is none or one is no integer.

    Source: ``validate_num_values`` in Nova's ``scheduler/filters/utils.py``.
    """
    try:
        return min(map(int, values), default=configured)
    except ValueError:
        return configured


@lru_cache(maxsize=10_000)
def words(values: tuple[str, ...]) -> frozenset[str]:
    """The alternatives that aggregates' values list, separated by commas."""
    return frozenset(word.strip() for joined in values for word in joined.split(","))

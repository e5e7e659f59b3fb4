"""Numbers and words in aggregate metadata, which filters read in place of an option."""

from collections.abc import Sequence
from functools import lru_cache


def least_integer(values: Sequence[str], configured: int) -> int:
    """Return the least of the aggregates' integers; ``configured`` without any, or if one is no integer.

    Source: ``validate_num_values`` in Nova's ``scheduler/filters/utils.py``.
    """
    try:
        return min(map(int, values), default=configured)
    except ValueError:
        return configured


@lru_cache(maxsize=10_000)
def words(values: tuple[str, ...]) -> frozenset[str]:
    """Return the words in aggregates' values, which separate them by commas."""
    return frozenset(word.strip() for joined in values for word in joined.split(","))

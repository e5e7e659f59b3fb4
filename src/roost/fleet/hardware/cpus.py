"""Sets of CPUs as integers, which are fast to compare, hash and count: bit n is CPU n."""

from collections.abc import Iterable
from functools import lru_cache

Cpus = int
"""A set of CPUs: bit n says whether CPU n is in it."""

MOST_CPUS = 8192
"""CPUs that a node can have. Higher numbers are refused: a set has as many bits as its highest CPU."""


def set_of(numbers: Iterable[int]) -> Cpus:
    """Return the set with these CPUs."""
    cpus = 0
    for number in numbers:
        cpus |= 1 << number
    return cpus


@lru_cache(maxsize=2**14)
def numbers_of(cpus: Cpus) -> tuple[int, ...]:
    """Return the numbers of the CPUs in a set, ascending. Cached, because nodes have the same cores."""
    numbers = []
    while cpus:
        lowest = cpus & -cpus
        numbers.append(lowest.bit_length() - 1)
        cpus ^= lowest
    return tuple(numbers)

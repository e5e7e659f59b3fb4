"""Sets of CPUs as integers: bit number n is CPU n. So they are compared, hashed and counted at once."""

from collections.abc import Iterable
from functools import lru_cache

Cpus = int
"""A set of CPUs: bit n says whether CPU n is in it."""

MOST_CPUS = 8192
"""CPUs that a node can have; higher numbers are refused, because a set is as long as its highest number."""


def set_of(numbers: Iterable[int]) -> Cpus:
    """The set with these CPUs."""
    cpus = 0
    for number in numbers:
        cpus |= 1 << number
    return cpus


@lru_cache(maxsize=2**14)
def numbers_of(cpus: Cpus) -> tuple[int, ...]:
    """The numbers of the CPUs in a set, ascending. The last answers are kept: nodes have the same cores."""
    numbers = []
    while cpus:
        lowest = cpus & -cpus
        numbers.append(lowest.bit_length() - 1)
        cpus ^= lowest
    return tuple(numbers)

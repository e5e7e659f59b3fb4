"""Names in portions that fit into one statement."""

from collections.abc import Iterable, Iterator
from itertools import islice

AT_ONCE = 500
"""Names in one statement; databases take tens of thousands of parameters at most, some far fewer."""


def in_batches(names: Iterable[str]) -> Iterator[list[str]]:
    """Each of the names once, in lists of at most `AT_ONCE`."""
    distinct = iter(dict.fromkeys(names))
    while some := list(islice(distinct, AT_ONCE)):
        yield some

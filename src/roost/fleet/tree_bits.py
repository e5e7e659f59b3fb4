"""The bits of trees of different forms, computed together by vector operations.

One by one, a provider takes some microseconds for each term. Even the devices of trees that are unlike all
others have few sets of resource classes, so the providers with one set are evaluated together.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.fleet.term_bits import FormBits, QueryTerms, ServedKinds
from roost.fleet.work import EVALUATION

TOGETHER: Final = 100
"""Providers for which one vector operation evaluates a condition in one unit of work."""

COLUMN: Final = 20
"""Fixed units of work of the vector operation of one condition."""

_FEW: Final = 5
"""Providers below which a vector operation does not pay."""


def bits_together(
    terms: QueryTerms,
    forms: Sequence[FormBits],
    rows_of: Sequence[Sequence[int]],
    roots: Sequence[int],
    served: ServedKinds,
) -> Iterator[int]:
    """Yield the bits of some trees. ``forms``, ``rows_of``, ``roots``: of each tree. Raises `TooMuchWork`."""
    if not forms:
        return
    rows = np.array([row for rows in rows_of for row in rows], dtype=np.intp)
    numbers = np.concatenate([form.numbers for form in forms])
    found = bits_of_rows(terms, rows, numbers, served.kinds)
    end = 0
    for form, its_rows, root in zip(forms, rows_of, roots, strict=True):
        start, end = end, end + len(its_rows)
        yield form.joined(found[start:end], its_rows, root)


def bits_of_rows(terms: QueryTerms, rows: Rows, numbers: Rows, served: Sequence[Bools]) -> list[int]:
    """Return the bits of some providers. Raises `TooMuchWork`.

    ``numbers``: of the `PositionBits` at the position of each. ``served``: for each kind, by row of the
    fleet, whether the provider could serve its terms.
    """
    meter = terms.fleet.meter
    order = np.argsort(numbers, kind="stable")
    found = [0] * len(rows)
    meter.spend_once(len(rows))
    for some in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        position = terms.positions[numbers.item(some[0])]
        if position.width and len(some) < _FEW:
            meter.spend_once(EVALUATION * position.cost * len(some))
            for place in some.tolist():
                found[place] = position.of(rows.item(place))
        elif position.width:
            meter.spend_once(COLUMN + position.cost * (COLUMN + len(some) // TOGETHER))
            bits = position.of_each(rows[some], served)
            for place, its in zip(some.tolist(), bits, strict=True):
                found[place] = its
    return found

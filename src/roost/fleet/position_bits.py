"""The bits of the providers at one position of trees: terms that they could serve, traits, amounts.

`roost.fleet.term_bits` explains the bits.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Bools, Int64, Rows
from roost.fleet.demanded_amounts import DemandedAmounts
from roost.fleet.fits import largest_amount
from roost.fleet.fleet import Fleet
from roost.fleet.match import in_any
from roost.fleet.term_kind import TermKind, has_trait

WORD = 62
"""Most bits in one number of an int64 column."""

_NAMES = 4
"""Traits that are looked up in the time that one condition takes."""


class Bits(NamedTuple):
    """The decoded bits of one provider.

    ``kinds``: the numbers of the kinds of terms that it could serve, ascending. ``traits``: the required
    traits that it has, as bits. ``available``: the available amount of each class.
    """

    kinds: list[int]
    traits: int
    available: dict[str, int]


class PositionBits:
    """The bits of the providers at one position. ``number``: in `roost.fleet.term_bits.QueryTerms.positions`.

    ``kinds``: the kinds of terms that providers there may serve. ``required``: the traits that the unsuffixed
    group requires of its providers jointly. ``amounts``: the demanded amounts of each class that providers
    there may have. ``width``: the number of bits. ``cost``: the number of conditions that are evaluated for
    each provider.
    """

    def __init__(
        self,
        fleet: Fleet,
        kinds: Sequence[TermKind],
        required: Sequence[frozenset[str]],
        amounts: Mapping[str, DemandedAmounts],
        number: int,
    ) -> None:
        self._fleet = fleet
        self.number = number
        self._kinds = kinds
        spread = any(not kind.group.granular for kind in self._kinds)
        self._spread = sum(1 << i for i, kind in enumerate(self._kinds) if not kind.group.granular)
        self._required = required if spread else ()
        self._amounts = {
            name: (demanded, mask)
            for name, demanded in amounts.items()
            if (
                mask := sum(
                    1 << i for i, kind in enumerate(kinds) if any(name == each for each, _ in kind.resources)
                )
            )
        }
        names = sum(len(any_of) for any_of in self._required)
        self.cost = len(self._kinds) + len(self._required) + names // _NAMES + len(self._amounts)
        self.width = (
            len(self._kinds)
            + len(self._required)
            + sum(amounts.width for amounts, _ in self._amounts.values())
        )

    def of(self, row: int) -> int:
        """Return the bits of a provider."""
        fleet, bits = self._fleet, 0
        for i, kind in enumerate(self._kinds):
            if kind.serves(fleet, row):
                bits |= 1 << i
        return self._with_rest(row, bits) if bits else 0

    def of_pool(self, row: int) -> int:
        """Return the bits of a provider for the trees that it shares with."""
        fleet, bits = self._fleet, 0
        for i, kind in enumerate(self._kinds):
            if kind.serves(fleet, row) and kind.serves_others(fleet, row):
                bits |= 1 << i
        return self._with_rest(row, bits) if bits else 0

    def _with_rest(self, row: int, options: int) -> int:
        fleet, bits, shift = self._fleet, options, len(self._kinds)
        for any_of in self._required:
            if options & self._spread and has_trait(fleet, any_of, row):
                bits |= 1 << shift
            shift += 1
        for name, (amounts, mask) in self._amounts.items():
            if options & mask:
                columns = fleet.inventory_columns(name)
                slot = columns.slot(row)
                free = columns.capacity.item(slot) - columns.used.item(slot)
                largest = largest_amount(free, columns.max_unit.item(slot))
                bits |= amounts.number(int(largest)) << shift
            shift += amounts.width
        return bits

    def of_each(self, rows: Rows, served: Sequence[Bools]) -> list[int]:
        """Return the bits of many providers; ``served`` as for `columns`."""
        words: list[tuple[Int64, int]] = []
        word: Int64 = np.zeros(len(rows), dtype=np.int64)
        width = 0
        for column, bits in self.columns(rows, served):
            if width + bits > WORD:
                words.append((word, width))
                word, width = np.zeros(len(rows), dtype=np.int64), 0
            word |= column << width
            width += bits
        found: list[int] = word.tolist()
        for lower, bits in reversed(words):
            found = [low | high << bits for low, high in zip(lower.tolist(), found, strict=True)]
        return found

    def columns(self, rows: Rows, served: Sequence[Bools]) -> list[tuple[Int64, int]]:
        """Return the bits of many providers from the lowest on: parts, and the width of each.

        ``served``: for each kind of the query, by row, whether the provider could serve its terms.
        """
        parts: list[tuple[Int64, int]] = []
        options: Int64 = np.zeros(len(rows), dtype=np.int64)
        for i, kind in enumerate(self._kinds):
            if i and i % WORD == 0:
                parts.append((options, WORD))
                options = np.zeros(len(rows), dtype=np.int64)
            options |= served[kind.number][rows].astype(np.int64) << i % WORD
        parts.append((options, len(self._kinds) - WORD * len(parts)))
        for any_of in self._required:
            has = in_any(self._fleet.with_trait, any_of, rows) & self._any(parts, self._spread)
            parts.append((has.astype(np.int64), 1))
        for name, (amounts, mask) in self._amounts.items():
            columns = self._fleet.inventory_columns(name)
            numbers = amounts.numbers(columns.largest_in(columns.slots(rows)))
            numbers[~self._any(parts, mask)] = 0
            parts.append((numbers, amounts.width))
        return parts

    @staticmethod
    def _any(parts: Sequence[tuple[Int64, int]], mask: int) -> Bools:
        """Return for each provider whether it could serve one of the kinds in a mask."""
        found: Bools = np.zeros(len(parts[0][0]), dtype=np.bool_)
        for column, width in parts:
            if not mask:
                break
            found |= (column & (mask & ((1 << width) - 1))) != 0
            mask >>= width
        return found

    def read(self, bits: int) -> Bits:
        """Decode the bits of a provider."""
        kinds = []
        options = bits & ((1 << len(self._kinds)) - 1)
        while options:
            lowest = options & -options
            kinds.append(self._kinds[lowest.bit_length() - 1].number)
            options ^= lowest
        shift = len(self._kinds)
        traits = bits >> shift & ((1 << len(self._required)) - 1)
        shift += len(self._required)
        available = {}
        for name, (amounts, _) in self._amounts.items():
            available[name] = amounts.amount(bits >> shift & ((1 << amounts.width) - 1))
            shift += amounts.width
        return Bits(kinds, traits, available)

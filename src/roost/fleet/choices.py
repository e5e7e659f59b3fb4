"""Candidates as rows, their repeats, and their conversion to candidates with uuids."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from roost.fleet.assignments import Assignment
from roost.fleet.columns import NO_ROWS, Rows
from roost.fleet.fleet import Fleet
from roost.fleet.rowset import RowSet
from roost.fleet.work import AMOUNT, CANDIDATE, Meter
from roost.model.allocation import Allocations, Candidate, Resources


class Need(NamedTuple):
    """The part of a query that one provider serves: suffixes of groups, and amounts by class (maybe none)."""

    suffixes: tuple[str, ...]
    resources: Resources


Choice = tuple[int, Assignment]
"""One candidate as rows: its anchor, and the provider that serves each need."""


def served_alone(roots: Rows) -> Iterator[Choice]:
    """Return the choices of roots that serve everything."""
    anchors = roots.tolist()
    return zip(anchors, zip(anchors, strict=True), strict=True)


FEW = 32
"""Choices that are looked at one by one: to set up columns for them takes as long."""


class FoundChoices:
    """The choices that a search has found, in their order, as a list or as columns.

    ``choices``: as a list; None: each is one of ``roots``, which serves everything alone.
    """

    def __init__(self, choices: Sequence[Choice] | None, roots: Rows = NO_ROWS) -> None:
        self._choices = choices
        self._roots = roots

    def __len__(self) -> int:
        return len(self._roots) if self._choices is None else len(self._choices)

    @property
    def choices(self) -> Sequence[Choice]:
        """The choices as a list."""
        if self._choices is None:
            self._choices = list(served_alone(self._roots))
        return self._choices

    @cached_property
    def rows(self) -> Rows:
        """The provider that serves each need of each choice: intp[choices, needs]."""
        if self._choices is None:
            return self._roots[:, None]
        return np.array([rows for _, rows in self._choices], dtype=np.intp)

    def anchors(self) -> list[int]:
        """Return the anchors, ascending, each once."""
        if self._choices is None:
            anchors: list[int] = self._roots.tolist()
            return anchors
        return sorted({anchor for anchor, _ in self._choices})

    def providers(self, places: Sequence[int]) -> list[int]:
        """Return the providers that serve the needs at ``places``, ascending, each once."""
        if self._choices is None:
            return self.anchors() if places else []
        if len(self._choices) <= FEW:
            return sorted({rows[place] for _, rows in self._choices for place in places})
        distinct: list[int] = np.unique(self.rows[:, places]).tolist()
        return distinct


def candidate_of(fleet: Fleet, needs: Sequence[Need], choice: Choice) -> Candidate:
    """Return a candidate with uuids for rows. Raises `TooMuchWork`."""
    anchor, rows = choice
    fleet.meter.spend(CANDIDATE + AMOUNT * len(rows))
    allocations: Allocations = {}
    mappings: dict[str, list[str]] = {}
    for need, row in zip(needs, rows, strict=True):
        uuid = fleet.uuid(row)
        for suffix in need.suffixes:
            serving = mappings.setdefault(suffix, [])
            if uuid not in serving:
                serving.append(uuid)
        if need.resources:
            held = allocations.setdefault(uuid, {})
            for name, amount in need.resources.items():
                held[name] = held.get(name, 0) + amount
    return Candidate(fleet.uuid(anchor), allocations, mappings)


def takes_from_tree(fleet: Fleet, needs: Sequence[Need], choice: Choice) -> bool:
    """Return whether a candidate takes something from a provider of its own tree. Raises `TooMuchWork`."""
    anchor, rows = choice
    fleet.meter.spend(1 + len(rows))
    root_of = fleet.root.item
    return any(root_of(row) == anchor and bool(need.resources) for need, row in zip(needs, rows, strict=True))


class CandidateRepeats:
    """Detects candidates that were already found for another tree.

    Only a candidate of sharing providers alone can repeat: it belongs to every tree that all of them serve.
    """

    def __init__(self, sharing: RowSet, meter: Meter) -> None:
        self._sharing = sharing
        self._meter = meter
        self._seen: set[Assignment] = set()

    def has(self, rows: Assignment) -> bool:
        """Return whether the candidate was found before, and count it as found. Raises `TooMuchWork`."""
        self._meter.spend(1 + len(rows))
        if not all(row in self._sharing for row in rows):
            return False
        if rows in self._seen:
            return True
        self._seen.add(rows)
        return False

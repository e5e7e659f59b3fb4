"""Candidates as rows, their repeats, and their conversion to candidates with uuids."""

from collections.abc import Sequence
from typing import NamedTuple

from roost.fleet.assignments import Assignment
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

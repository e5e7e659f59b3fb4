"""Single providers in the trees of hosts, by rows of the fleet."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Rows
from roost.fleet.work import AMOUNT
from roost.model.allocation import Candidate
from roost.scheduler.candidates.candidate_source import ProviderLevels

ONE_BY_ONE: Final = 48
"""Most trees that are walked one by one; more are searched by vector operations on the whole fleet."""


def providers_of(fleet: Fleet, roots: Rows, resource_class: str) -> ProviderLevels:
    """Return the providers in the trees of ``roots`` that have a class; -1 is no tree."""
    columns = fleet.inventory_columns(resource_class)
    rows = columns.row[: columns.n]
    host = _positions(fleet, roots)[fleet.root[rows]]
    ours = np.flatnonzero(host >= 0)
    return ProviderLevels(host[ours], columns.capacity[ours], columns.used[ours])


def with_trait(fleet: Fleet, roots: Rows, trait: str) -> Bools:
    """Return the trees of ``roots`` that have a provider with a trait: bool[len(roots)]."""
    having = fleet.with_trait(trait)
    found = np.zeros(len(roots), dtype=np.bool_)
    if len(roots) <= ONE_BY_ONE:
        for position, root in enumerate(roots.tolist()):
            found[position] = root >= 0 and any(row in having for row in fleet.subtree(root))
        return found
    rows = having.rows()
    at = _positions(fleet, roots)[fleet.root[rows]]
    found[at[at >= 0]] = True
    return found


def still_fits(fleet: Fleet, candidate: Candidate) -> bool:
    """Return whether a candidate has room after the claims of the run. Raises `TooMuchWork`."""
    for provider, resources in candidate.allocations.items():
        fleet.meter.spend(AMOUNT * (1 + len(resources)))
        row = fleet.row(provider)
        for name, amount in resources.items():
            columns = fleet.inventory_columns(name)
            if not columns.fits_at(columns.slot(row), amount):
                return False
    return True


def that_fit(
    fleet: Fleet, found: Iterable[Candidate], splits: Callable[[], Iterable[Candidate]]
) -> Iterator[Candidate]:
    """Yield the candidates of a tree that have room after the claims of the run.

    ``found``: the candidates of the tree before these claims. If none of them has room, the result is the
    first that fits of ``splits``, the candidates of the tree's present state.
    """
    left = False
    for candidate in found:
        if still_fits(fleet, candidate):
            left = True
            yield candidate
    if not left:
        yield from islice((each for each in splits() if still_fits(fleet, each)), 1)


def _positions(fleet: Fleet, roots: Rows) -> Rows:
    """Return the position in ``roots`` of each row of the fleet, -1 for rows that are not in it."""
    position = np.full(fleet.n_rows, -1, dtype=np.intp)
    there = np.flatnonzero(roots >= 0)
    position[roots[there]] = there
    return position

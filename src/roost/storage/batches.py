"""Works of one type that wait together are performed together, by a few statements for all of them.

A *work* is the body of a transaction (`group_commit.Work`). Python and SQLAlchemy take longer for a statement
than the database. So a type of work that many callers run at the same time has a batch form: it reads and
locks the rows of all works in one statement, decides, and writes in one statement. A single work is a batch
of one, so each rule is written once.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol

from sqlalchemy.engine import Connection


class Batched(Protocol):
    """A work whose type has a batch form, `together`.

    `perform` calls it only for works without a common key, so each of them sees what it would see alone.
    """

    @property
    def keys(self) -> Collection[str]:
        """Keys of the rows that the work reads or changes, among those that works of its type share."""

    @classmethod
    def together(cls, connection: Connection, works: Sequence[Any], /) -> Sequence[Any]:
        """Perform works of this type. Returns their results, in their order."""


def perform(connection: Connection, works: Sequence[Callable[[Connection], Any]]) -> list[Any]:
    """Perform works in one transaction. Returns their results, in their order.

    All works wait at the same time, so none relies on another one being done before it. Works of one type
    with a common key keep their order.
    """
    if len(works) == 1:
        return [works[0](connection)]
    results: list[Any] = [None] * len(works)
    for places in _kinds(works):
        some = [works[place] for place in places]
        if len(some) == 1:
            results[places[0]] = some[0](connection)
            continue
        together = type(some[0]).together  # type: ignore[attr-defined]
        done = [each for round_ in _rounds(some) for each in together(connection, round_)]
        for place, result in zip(places, done, strict=True):
            results[place] = result
    return results


def _kinds(works: Sequence[object]) -> Iterator[list[int]]:
    """Yield the indices of works that are performed together."""
    places: dict[object, list[int]] = {}
    for place, work in enumerate(works):
        kind = type(work) if hasattr(type(work), "together") else place
        places.setdefault(kind, []).append(place)
    yield from places.values()


def _rounds(works: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the works in their order, in lists in which no two works have a common key."""
    round_: list[Any] = []
    taken: set[str] = set()
    for work in works:
        keys = work.keys
        if not taken.isdisjoint(keys):
            yield round_
            round_, taken = [], set()
        round_.append(work)
        taken.update(keys)
    yield round_

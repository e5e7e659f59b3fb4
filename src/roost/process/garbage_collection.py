"""Settings of the garbage collector: it skips loaded objects, and collects young ones seldom."""

import gc
from typing import Final

YOUNG_OBJECTS: Final = 10_000
"""New objects after which the youngest generation is collected; Python's default is 700. Dozens of requests
are under way together, and none of their objects is garbage: with 700, each request was traversed several
times, for 5 to 10 % of a scheduler's time."""

MIDDLE: Final = 3
"""Collections of the youngest generation after which the middle one is collected as well."""

OLDEST: Final = 1
"""Collections of the middle generation after which all are collected: 80,000 new objects, in some 30 ms."""

SPARE_OBJECTS: Final = 1_000_000
"""Exempt objects, beyond twice as many as before, from which on all objects are collected again."""

ROUNDS: Final = 10
"""Collections of all generations after which the exempt objects are counted: 14 ns for each."""


class _Survivors:
    """Exempts the objects that a collection of all generations has found alive.

    So each collection visits only the objects that are new since the last one. Without this, each would visit
    all that is cached for some hundred flavors: a second in which a process does nothing else. An exempt
    object that is garbage in a cycle stays; when very many are exempt, one collection visits them all.
    """

    def __init__(self) -> None:
        self._before = self._rounds = 0
        self._thorough = False

    def begin(self) -> None:
        """Exempt all objects that exist now."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        # The interpreter collects all generations when a quarter as many objects are new as the last such
        # collection found: this one finds none.
        gc.collect()
        self._before = gc.get_freeze_count()
        if self.collected not in gc.callbacks:
            gc.callbacks.append(self.collected)

    def collected(self, phase: str, info: dict[str, int]) -> None:
        """Exempt the survivors of a collection of all generations. `gc` calls this."""
        if phase != "stop" or info["generation"] < 2:
            return
        gc.freeze()
        self._rounds += 1
        if self._rounds % ROUNDS and not self._thorough:
            return
        exempt = gc.get_freeze_count()
        if self._thorough:
            self._thorough, self._before = False, exempt
        elif exempt > 2 * self._before + SPARE_OBJECTS:
            self._thorough = True
            gc.unfreeze()


_survivors = _Survivors()


def keep_what_is_loaded() -> None:
    """Exempt all objects that exist now from garbage collection, and collect younger ones less often.

    A process calls this after it has opened its ledger. Collections that visited all imported and loaded
    objects took 40 to 80 ms, twice a second under load, and delayed every request by that.
    """
    _survivors.begin()
    gc.set_threshold(YOUNG_OBJECTS, MIDDLE, OLDEST)

"""Settings of the garbage collector: it skips loaded objects, and collects young ones seldom."""

import gc
from typing import Final

YOUNG_OBJECTS: Final = 10_000
"""New objects after which the youngest generation is collected; Python's default is 700. Dozens of requests
are under way together, and none of their objects is garbage: with 700, each request was traversed several
times, for 5 to 10 % of a scheduler's time."""

OLDER: Final = 5
"""Collections of one generation after which the next older one is collected. With Python's own 10, garbage
could wait for a million new objects."""


def keep_what_is_loaded() -> None:
    """Exempt all objects that exist now from garbage collection, and collect younger ones less often.

    A process calls this after it has opened its ledger. Collections that visited all imported and loaded
    objects took 40 to 80 ms, twice a second under load, and delayed every request by that.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, OLDER, OLDER)

"""Works of a cell's database that say which states they put instances into."""

from collections.abc import Collection

import msgspec

GONE = "gone"
"""Not a state: what the removal of an instance enters."""


class CellWork(msgspec.Struct, frozen=True):
    """The statements of one transaction on a cell's database.

    ``enters`` are the states that instances may be in afterwards which were not in them before, and `GONE`:
    for listeners.
    """

    @property
    def enters(self) -> Collection[str]:
        return ()

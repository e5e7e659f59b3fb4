"""The base class of works of a cell's database: a work says which states instances enter by it."""

from collections.abc import Collection

import msgspec

GONE = "gone"
"""In place of a state: the instance was removed."""


class CellWork(msgspec.Struct, frozen=True):
    """The statements of one transaction on a cell's database.

    ``enters``: the states that instances may enter by it, or `GONE`, for listeners.
    """

    @property
    def enters(self) -> Collection[str]:
        return ()

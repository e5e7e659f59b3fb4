"""The changes of the bytes of one map since the last round."""

from typing import Final

import msgspec
import numpy as np

from roost.dashboard.fleet.kept_levels import MapBytes

SHARE_OF_CHANGES: Final = 8
"""A map of which more than one host in so many has changed is read again: its bytes are shorter than such
changes."""

FEW_CHANGES: Final = 200
"""Changes that are always sent."""


class MapMessage(msgspec.Struct, frozen=True):
    """The data of an event of a map: positions of hosts and their new bytes. An unknown ``layout`` makes the
    reader read everything again."""

    layout: str
    commit: float
    changes: list[tuple[int, int]]


RELOAD: Final = msgspec.json.encode(MapMessage("", 0, [])).decode()
"""The data that makes a map read everything again."""


class MapChanges:
    """Follows the bytes of one map. ``shown``: those that the viewers have."""

    def __init__(self, shown: MapBytes) -> None:
        self.shown = shown

    def take(self, newest: MapBytes) -> str | None:
        """Return the data of an event that leads from the last bytes to the newest ones; None without any.

        Nothing is told of bytes in another layout: the event of the layout makes maps read everything again.
        """
        before, self.shown = self.shown, newest
        if before.layout != newest.layout:
            return None
        if before.scale != newest.scale:
            return RELOAD
        if before.levels is newest.levels:
            return None
        places = np.flatnonzero(before.levels != newest.levels)
        if not len(places):
            return None
        if len(places) > max(FEW_CHANGES, len(newest.levels) // SHARE_OF_CHANGES):
            return RELOAD
        changes = list(zip(places.tolist(), newest.levels[places].tolist(), strict=True))
        commit = int(newest.commit) if newest.commit.is_integer() else newest.commit
        return msgspec.json.encode(MapMessage(newest.layout, commit, changes)).decode()

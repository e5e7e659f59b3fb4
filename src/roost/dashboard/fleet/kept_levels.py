"""The bytes of maps, kept for all viewers of the same one."""

import zlib
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np

from roost.dashboard.fleet.hosts import FleetHosts, HostsNow
from roost.dashboard.fleet.levels import MapScale, map_levels, scale_of
from roost.dashboard.fleet.selection import MapSelection
from roost.fleet.host_levels import Levels

MOST_MAPS: Final = 64
"""Maps whose bytes are kept; the one that was not asked for longest goes first."""

KEPT_SECONDS: Final = 1.0
"""Seconds for which bytes of one commit are kept: states of hosts change without one."""

_BETWEEN: Final = 0.001
"""Added to the number of bytes that have changed without a commit."""

_STRATEGIES: Final = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)

_GZIP: Final = 16 + zlib.MAX_WBITS
"""The window of zlib with the head of gzip."""


class MapBytes:
    """The bytes of one map.

    ``layout``: the id of the layout. ``commit``: the commit that they show; bytes that differ on the same
    commit, because the state of a host has changed, are told apart by a fraction. Without a ledger commits
    are counted from 0.
    """

    def __init__(self, layout: str, commit: float, levels: Levels, scale: MapScale) -> None:
        self.layout = layout
        self.commit = commit
        self.levels = levels
        self.scale = scale

    @property
    def number(self) -> str:
        """The commit as text."""
        return f"{self.commit:.3f}".rstrip("0").rstrip(".")

    @cached_property
    def compressed(self) -> bytes:
        """The bytes, compressed once for all viewers.

        Hosts that are alike stand together, and repetitions are short. Where use is random there are none,
        and codes of single bytes, without references to repetitions, are an eighth shorter.
        """
        levels = self.levels.tobytes()
        return min((_compressed(levels, each) for each in _STRATEGIES), key=len)


class KeptLevels:
    """Keeps the bytes of the maps that were asked for last. ``monotonic``: seconds."""

    def __init__(self, hosts: FleetHosts, monotonic: Callable[[], float]) -> None:
        self._hosts = hosts
        self._monotonic = monotonic
        self._kept: OrderedDict[MapSelection, tuple[float, int, MapBytes]] = OrderedDict()

    def of(self, now: HostsNow, selection: MapSelection) -> MapBytes:
        """Return the bytes of a map, at most a second old and never of an earlier commit."""
        at, version = self._monotonic(), -1 if now.version is None else now.version
        kept = self._kept.get(selection)
        if kept is not None:
            self._kept.move_to_end(selection)
            made, of, found = kept
            if at - made < KEPT_SECONDS and of == version and found.layout == now.layout.version:
                return found
        found = self.made(now, selection, None if kept is None else kept[2])
        self._kept[selection] = at, version, found
        if len(self._kept) > MOST_MAPS:
            self._kept.popitem(last=False)
        return found

    def made(self, now: HostsNow, selection: MapSelection, before: MapBytes | None = None) -> MapBytes:
        """Return the bytes of a map without keeping them. ``before``: the last ones of the selection."""
        name = selection.class_of(now)
        levels = map_levels(now, selection.by, name, selection.chosen(now, self._hosts))
        scale = scale_of(now, selection.by, name)
        commit = float(now.version or 0)
        if before is not None and before.layout == now.layout.version:
            if before.scale == scale and np.array_equal(before.levels, levels):
                # The same bytes of a later commit: whoever has them need not read them again.
                levels = before.levels
            if before.commit >= commit:
                commit = before.commit if levels is before.levels else before.commit + _BETWEEN
        return MapBytes(now.layout.version, commit, levels, scale)


def _compressed(levels: bytes, strategy: int) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP, 9, strategy)
    return packer.compress(levels) + packer.flush()

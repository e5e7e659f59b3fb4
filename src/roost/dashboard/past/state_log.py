"""The states of hosts over time: each change is appended to the file of its day.

    entry   time float64, key of the host's root provider uint64, state uint8

A file begins with the state of every host, and so does each process that goes on with it. An entry without a
host says that the states were looked at. Times between two looks that are far apart are a gap: nobody looked.
"""

import contextlib
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from roost.dashboard.past.index_block import Keys
from roost.dashboard.past.index_entries import NOBODY

ENTRY: Final = np.dtype([("at", "<f8"), ("key", "<u8"), ("state", "u1")])

DAY: Final = 86_400
KEPT_DAYS: Final = 8
MOST_BYTES: Final = 64 * 1024 * 1024
"""Size of the file of a day: hosts that change all the time fill no disk."""

GAP_SECONDS: Final = 150.0
"""Seconds between two looks from which on the time between them is a gap."""

UNKNOWN: Final = 255
"""The state of a host that the log does not know. As an entry without a host: a process began to look."""

LOOKED: Final = 254
"""As an entry without a host: the states were looked at."""

_PATTERN: Final = "*.states"
States = npt.NDArray[np.uint8]


class StateLog:
    """The log in a folder. Its methods are called by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._day = -1
        self._keys: Keys = np.zeros(0, dtype=np.uint64)
        self._states: States = np.zeros(0, dtype=np.uint8)

    def look(self, at: float, keys: Keys, states: States) -> None:
        """Append the states that differ from the last look. ``keys``: uint64[n]. Raises: `OSError`."""
        order = np.argsort(keys)
        keys, states = keys[order], states[order]
        day = int(at // DAY)
        begins = day != self._day or not np.array_equal(keys, self._keys)
        changed = np.ones(len(keys), dtype=np.bool_) if begins else states != self._states
        entries = np.zeros(1 + int(changed.sum()), ENTRY)
        entries["at"] = at
        entries["key"][1:], entries["state"][1:] = keys[changed], states[changed]
        entries["key"][0], entries["state"][0] = NOBODY, UNKNOWN if begins else LOOKED
        self._append(day, entries)
        self._day, self._keys, self._states = day, keys, states

    def states_at(self, at: float, keys: Keys) -> States | None:
        """Return the state of each host at a time: uint8[n], `UNKNOWN` of hosts that were not there.

        None: nobody looked at that time.
        """
        entries = self._read(int(at // DAY))
        before = entries[entries["at"] <= at]
        looks = np.flatnonzero(before["key"] == NOBODY)
        if not len(looks) or at - before["at"][looks[-1]] > GAP_SECONDS:
            return None
        begins = np.flatnonzero((before["key"] == NOBODY) & (before["state"] == UNKNOWN))
        if not len(begins):
            return None
        known = before[begins[-1] :][::-1]
        order = np.argsort(known["key"], kind="stable")
        # Of several entries of a host the newest one is first.
        ordered = known["key"][order]
        place = np.searchsorted(ordered, keys)
        place[place == len(ordered)] = 0
        found = known["state"][order[place]].copy()
        found[ordered[place] != keys] = UNKNOWN
        return found

    def _append(self, day: int, entries: npt.NDArray[np.void]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if day != self._day:
            for old in sorted(self._folder.glob(_PATTERN))[:-KEPT_DAYS]:
                with contextlib.suppress(OSError):
                    old.unlink()
        with self._file(day).open("ab") as file:
            # A process that was killed may have left a part of an entry.
            whole = file.tell() // ENTRY.itemsize * ENTRY.itemsize
            file.truncate(whole)
            if whole + entries.nbytes <= MOST_BYTES:
                file.write(entries.tobytes())

    def _read(self, day: int) -> npt.NDArray[np.void]:
        try:
            content = self._file(day).read_bytes()
        except OSError:
            content = b""
        return np.frombuffer(content, ENTRY, len(content) // ENTRY.itemsize)

    def _file(self, day: int) -> Path:
        return self._folder / f"{day:06d}.states"

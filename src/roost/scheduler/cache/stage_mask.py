"""The hosts that are left for one request, and their number after each filter of the equivalence class."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Rows

Stages = npt.NDArray[np.uint8]

ONE_BY_ONE = 32
"""Hosts excluded one by one; more by vector operations."""


class StageMask:
    """A copy of a class's ``stage`` and counts, from which one request excludes hosts.

    ``left``: the number of hosts left after each number of the class's filters. An excluded host has stage 0.
    """

    __slots__ = ("left", "stage")

    def __init__(self, stage: Stages, left: Sequence[int]) -> None:
        self.stage = stage.copy()
        self.left = list(left)

    def copy(self) -> "StageMask":
        """Return a mask with the same hosts."""
        return StageMask(self.stage, self.left)

    def leave_out(self, places: Iterable[int], asked: int) -> None:
        """Exclude hosts after ``asked`` filters of the class were applied."""
        several = list(places)
        if len(several) > ONE_BY_ONE:
            self._leave_out_many(np.array(several, dtype=np.intp), asked)
            return
        for place in several:
            self.lower(place, 0, asked)

    def lower(self, place: int, stage: int, asked: int = 0) -> None:
        """Lower the stage of a host that is left after ``asked`` filters."""
        was = self.stage.item(place)
        if was <= max(asked, stage):
            return
        self.stage[place] = stage
        for step in range(max(asked, stage), was):
            self.left[step] -= 1

    def keep(self, mask: Bools, asked: int) -> None:
        """Exclude all hosts that a mask (bool[places]) rejects."""
        self.stage *= mask.view(np.uint8)
        counted: dict[int, int] = {}
        for step in range(asked, len(self.left)):
            # Each step leaves a subset of the hosts before it: equal counts mean equal hosts.
            before = self.left[step]
            if before not in counted:
                counted[before] = int(np.count_nonzero(self.stage > step))
            self.left[step] = counted[before]

    def keep_only(self, places: Rows, asked: int) -> None:
        """Exclude all hosts but some."""
        stages = self.stage[places]
        self.stage[:] = 0
        self.stage[places] = stages
        for step in range(asked, len(self.left)):
            self.left[step] = int(np.count_nonzero(stages > step))

    def _leave_out_many(self, places: Rows, asked: int) -> None:
        stages = self.stage[places]
        gone = stages > asked
        places, stages = places[gone], stages[gone]
        self.stage[places] = 0
        for step in range(asked, len(self.left)):
            self.left[step] -= int(np.count_nonzero(stages > step))

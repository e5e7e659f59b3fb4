"""The hosts in play for one request, and how many each filter of the shape leaves of them."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Rows

Stages = npt.NDArray[np.uint8]

ONE_BY_ONE = 32
"""Up to so many hosts are left out one by one; more by vector operations."""


class StageMask:
    """A shape's ``stage`` and counts, of which one request leaves hosts out.

    ``left``: for each number of the shape's filters asked, how many hosts are in play then. A host that was
    left out has stage 0.
    """

    __slots__ = ("left", "stage")

    def __init__(self, stage: Stages, left: Sequence[int]) -> None:
        self.stage = stage.copy()
        self.left = list(left)

    def copy(self) -> "StageMask":
        """The same hosts, to go on from."""
        return StageMask(self.stage, self.left)

    def leave_out(self, places: Iterable[int], asked: int) -> None:
        """Leave hosts out after ``asked`` filters of the shape were asked."""
        several = list(places)
        if len(several) > ONE_BY_ONE:
            self._leave_out_many(np.array(several, dtype=np.intp), asked)
            return
        for place in several:
            self.lower(place, 0, asked)

    def lower(self, place: int, stage: int, asked: int = 0) -> None:
        """Give a host that is in play after ``asked`` filters a lower stage."""
        was = self.stage.item(place)
        if was <= max(asked, stage):
            return
        self.stage[place] = stage
        for step in range(max(asked, stage), was):
            self.left[step] -= 1

    def keep(self, mask: Bools, asked: int) -> None:
        """Leave all hosts out that a mask (bool[places]) does not let pass."""
        self.stage *= mask.view(np.uint8)
        counted: dict[int, int] = {}
        for step in range(asked, len(self.left)):
            # Fewer hosts are in play with each step: where two counts are equal the hosts are the same.
            before = self.left[step]
            if before not in counted:
                counted[before] = int(np.count_nonzero(self.stage > step))
            self.left[step] = counted[before]

    def keep_only(self, places: Rows, asked: int) -> None:
        """Leave all hosts out but some."""
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

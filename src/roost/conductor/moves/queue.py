"""The moves of one cell that one conductor owns, and their limits."""

from roost.conductor.backoff import Backoff
from roost.conductor.owned_work import OwnedWork
from roost.model.move import Move
from roost.state.cell_database.move_limits import MoveLimits
from roost.state.leases import Tenure


class MoveQueue(OwnedWork[Move]):
    """The moves of one cell that one conductor owns and has to work on. ``limits``: of moves at once."""

    def __init__(self, cell: str, tenure: Tenure, backoff: Backoff, limits: MoveLimits) -> None:
        super().__init__(cell, tenure, backoff)
        self.limits = limits

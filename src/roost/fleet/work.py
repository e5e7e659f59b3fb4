"""The work of a query, counted in units: its cost is known while it runs, and depends on no clock."""

from roost.fleet.errors import TooMuchWork


class Work:
    """What a query may still do. ``left``: units.

    A unit is a step of a search, a provider of a candidate, or a provider in an answer: some microseconds.
    Vector operations are not counted; they take microseconds for a thousand providers.
    """

    __slots__ = ("left",)

    def __init__(self, units: int) -> None:
        self.left = units

    def spend(self, units: int) -> None:
        """Count units of work that are done now. Raises `TooMuchWork` if they are more than is left."""
        self.left -= units
        if self.left < 0:
            raise TooMuchWork("the query takes more work than is allowed")

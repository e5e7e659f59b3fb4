"""Cached values of a single host, valid until it changes."""

Room = tuple[int, int, int, int, int]
"""Inventory of a host in one class: used, capacity, min_unit, max_unit, step_size."""

Rooms = dict[str, Room | None]
"""Cached inventory of a host by resource class; None: the host lacks the class."""


class HostEntry:
    """One host in plain Python numbers, shared by all equivalence classes.

    Reading each number from a column again for each class would cost more than its use.

    ``row``: in the fleet, -1 if there is none. ``numbers``: of each weigher with a column. ``meets``: whether
    the host meets conditions other than room, by the conditions.
    """

    __slots__ = ("meets", "numbers", "rooms", "row")

    def __init__(self, row: int, rooms: Rooms) -> None:
        self.row = row
        self.rooms = rooms
        self.numbers: list[float] = []
        self.meets: dict[bytes, bool] = {}

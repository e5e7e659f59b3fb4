"""What is known of a single host until it is touched again."""

Room = tuple[int, int, int, int, int]
"""What one host has of a class: used, capacity, min_unit, max_unit, step_size."""

Rooms = dict[str, Room | None]
"""The room in one host by class, as far as somebody has asked; None if it has none of it."""


class HostEntry:
    """One host, which the shapes look at one after the other: in plain Python numbers, because to get each
    of them out of a column again for each shape costs more than what is done with it.

    ``row``: the fleet's, -1 if there is none. ``numbers``: what each weigher that has something to say says.
    ``meets``: what was found out about conditions other than room, by the conditions.
    """

    __slots__ = ("meets", "numbers", "rooms", "row")

    def __init__(self, row: int, rooms: Rooms) -> None:
        self.row = row
        self.rooms = rooms
        self.numbers: list[float] = []
        self.meets: dict[bytes, bool] = {}

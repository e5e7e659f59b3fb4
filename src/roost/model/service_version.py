"""The version that each process reports, and the features that need all processes to know them.

The version rises with each change of what processes exchange: messages, leases, contents of rows. During a
rolling upgrade a feature stays off until the lowest version of all running processes knows it.

    1   the first version; earlier processes report 0
    2   agents attach the ports and accelerators of guests
    3   operators' words are announced by commits
    4   agents stop guests and start them again, and a build may wait for its confirmation
    5   users stop and start their instances, and agents build guests that they do not start
    6   ports and accelerators follow instances that move
    7   a move has a row in the cell of its source and in that of its target
    8   guests move while they run
    9   agents have fences, and hosts that are proved to be dead are evacuated by themselves
   10   instances are shelved, and claimed again by another consumer
   11   an instance is resized on its own host
   12   a move to another cell waits for its word, and may be a resize
"""

from typing import Final

import msgspec

SERVICE_VERSION: Final = 12


class Feature(msgspec.Struct, frozen=True):
    """A feature that is used only when all processes know it. ``since``: the first version that does."""

    name: str
    since: int
    what: str


ATTACHMENTS: Final = Feature("attachments", 2, "ports and accelerators are attached to guests")
WORDS: Final = Feature("operator-words", 3, "operators' words count when they are answered")
MOVES: Final = Feature("moves", 4, "instances move between hosts")
POWER: Final = Feature("power", 5, "instances are stopped and started")
ATTACHED_MOVES: Final = Feature("attached-moves", 6, "instances with ports or accelerators move")
CELL_MOVES: Final = Feature("cell-moves", 7, "instances move to other cells")
LIVE: Final = Feature("live-moves", 8, "guests move while they run")
FENCES: Final = Feature("fences", 9, "dead hosts are evacuated by themselves")
SHELVES: Final = Feature("shelves", 10, "instances are shelved and unshelved")
IN_PLACE_RESIZES: Final = Feature("in-place-resizes", 11, "instances are resized on their own hosts")
CELL_REVERTS: Final = Feature(
    "cell-reverts", 12, "moves to other cells are reverted, and instances resized by them"
)
FEATURES: Final = (
    *(ATTACHMENTS, WORDS, MOVES, POWER, ATTACHED_MOVES, CELL_MOVES, LIVE),
    *(FENCES, SHELVES, IN_PLACE_RESIZES, CELL_REVERTS),
)
"""The features that a process of an earlier version would silently ignore."""

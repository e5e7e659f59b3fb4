"""Findings: the differences that verification reports, and their kinds."""

import msgspec

BROKEN_REFERENCE = "broken-reference"
"""A row names a provider, class, trait or consumer that does not exist."""
OUT_OF_RANGE = "out-of-range"
"""A number of an inventory, or the id of a row, has more than 31 bits."""
PARENT_LOOP = "parent-loop"
"""A provider is its own ancestor."""
EMPTY_CONSUMER = "empty-consumer"
"""A consumer holds nothing."""
NO_INVENTORY = "no-inventory"
"""A resource class is allocated of which the provider has no inventory."""
OVER_CAPACITY = "over-capacity"
"""More is allocated than the inventory's capacity, were nothing of it reserved."""
UNIT_VIOLATED = "unit-violated"
"""An allocation violates the inventory's min_unit, max_unit or step_size."""
ASSIGNED_TWICE = "assigned-twice"
"""Two consumers have the same CPU or PCI device of a node to themselves."""
ASSIGNMENT_UNREADABLE = "assignment-unreadable"
"""The assignment of a consumer cannot be decoded."""
USE_DIFFERS = "use-differs"
"""The sum of the allocations differs from the database's own sum or from the usage in the fleet."""
FLEET_DIFFERS = "fleet-differs"
"""A fleet loaded from the tables, or moved over the commits and back, differs from the tables."""
COMMIT_GAP = "commit-gap"
"""Commits are missing between two that are kept."""
COMMIT_UNREADABLE = "commit-unreadable"
"""A commit's changes cannot be decoded."""
STATE_DIFFERS = "state-differs"
"""The tables, or a later commit, contradict the state that a commit says it left."""
TIME_DIFFERS = "time-differs"
"""A provider or consumer has another time than the newest kept commit that names it."""
UNEXPLAINED = "unexplained"
"""The tables have a fact that no commit put there, though all commits are kept."""


class Finding(msgspec.Struct, frozen=True):
    """One difference. ``kind``: a constant of this file or of `roost.conductor.comparison`. ``subject``: the
    name of the thing. ``detail``: its fault."""

    kind: str
    subject: str
    detail: str

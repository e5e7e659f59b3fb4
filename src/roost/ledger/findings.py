"""Findings: what verifying turns up, as values."""

import msgspec

BROKEN_REFERENCE = "broken-reference"
"""A row names a provider, class, trait or consumer that is not there."""
PARENT_LOOP = "parent-loop"
"""A provider is below itself."""
EMPTY_CONSUMER = "empty-consumer"
"""A consumer holds nothing."""
NO_INVENTORY = "no-inventory"
"""Something is allocated that the provider has no inventory of."""
OVER_CAPACITY = "over-capacity"
"""More is allocated than the inventory's capacity."""
UNIT_VIOLATED = "unit-violated"
"""An allocation breaks the inventory's min_unit, max_unit or step_size."""
USE_DIFFERS = "use-differs"
"""Use counted from the allocations is not what the database or the fleet says."""
FLEET_DIFFERS = "fleet-differs"
"""A fleet loaded from the tables, or replayed over the commits, is not as the tables are."""
COMMIT_GAP = "commit-gap"
"""Commits are missing between others that are kept."""
COMMIT_UNREADABLE = "commit-unreadable"
"""A commit's changes cannot be decoded."""
STATE_DIFFERS = "state-differs"
"""The tables, or a later commit, contradict what a commit says that it left."""
UNEXPLAINED = "unexplained"
"""Something is in the tables that no commit put there, though all commits are kept."""


class Finding(msgspec.Struct, frozen=True):
    """One difference. ``kind`` is one of this file's words (or `roost.conductor.verify`'s), ``subject``
    names the thing, ``detail`` says what is wrong with it."""

    kind: str
    subject: str
    detail: str

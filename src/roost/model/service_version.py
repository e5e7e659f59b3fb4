"""The version that processes tell of themselves, and the features that all of them must know.

It is raised by each change of what a process understands of the others: messages, leases, what is in rows.
While processes are exchanged one by one, a feature stays off until the least version that is there knows it.

    1   the first one; processes of before tell 0
    2   agents attach the ports and accelerators of guests
    3   operators' words are announced by commits
"""

from typing import Final

import msgspec

SERVICE_VERSION: Final = 3


class Feature(msgspec.Struct, frozen=True):
    """What all processes must know before it is used, and the version from which they do."""

    name: str
    since: int
    what: str


ATTACHMENTS: Final = Feature("attachments", 2, "ports and accelerators are attached to guests")
WORDS: Final = Feature("operator-words", 3, "operators' words count when they are answered")
FEATURES: Final = (ATTACHMENTS, WORDS)
"""The features that a process of an earlier version would pass over in silence."""

"""UUIDs as clients write them."""

import re
import uuid

UUID_LIKE = r"^([0-9a-fA-F]-?){32}\Z"
"""A UUID with its dashes or without. The text must also have at most `LONGEST_UUID` characters."""

DASHED_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z"

LONGEST_UUID = 36
"""Characters of a UUID with its dashes."""

_LIKE = re.compile(UUID_LIKE)
_CANONICAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_uuid_like(text: str) -> bool:
    """Return whether a text is a UUID, with its dashes or without."""
    return len(text) <= LONGEST_UUID and _LIKE.match(text) is not None


def canonical_uuid(text: str) -> str:
    """A UUID in the form that the tables have: lower case, with dashes. ``text`` must be like a UUID."""
    return text if _CANONICAL.fullmatch(text) else str(uuid.UUID(text))

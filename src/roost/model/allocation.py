"""Allocations, the consumers that own them, and allocation candidates."""

import msgspec

Resources = dict[str, int]
"""Resource class -> amount, in units of the class."""

Allocations = dict[str, Resources]
"""All allocations of one consumer: provider uuid -> resource class -> amount."""

UNKNOWN_TYPE = "unknown"
"""Consumer type of a consumer that was written without one.

Source: microversion 1.38, which added consumer types.
"""


class Consumer(msgspec.Struct, frozen=True):
    """The owner of allocations, usually an instance or a migration.

    ``generation`` increases by one with each write of the consumer's allocations, from 1.
    Source: microversion 1.28, which added consumer generations.
    """

    uuid: str
    project_id: str
    user_id: str
    generation: int
    consumer_type: str = UNKNOWN_TYPE


class Candidate(msgspec.Struct, frozen=True):
    """One allocation candidate: allocations that satisfy a whole query and fit all together.

    ``root`` is the uuid of the anchor, the root of the tree that the candidate belongs to. ``mappings``:
    suffix of a request group -> uuids of the providers that serve it ("" is the unsuffixed group).
    """

    root: str
    allocations: Allocations
    mappings: dict[str, list[str]]

"""Allocations and the consumers that hold them."""

import msgspec

Resources = dict[str, int]
"""Amount of each resource class."""

Allocations = dict[str, Resources]
"""What one consumer holds: provider uuid -> amount of each class."""

UNKNOWN_TYPE = "unknown"
"""Consumer type of consumers written before microversion 1.38."""


class Consumer(msgspec.Struct, frozen=True):
    """Who holds an allocation. ``generation`` rises with each write of the consumer's allocations."""

    uuid: str
    project_id: str
    user_id: str
    generation: int
    consumer_type: str = UNKNOWN_TYPE


class Candidate(msgspec.Struct, frozen=True):
    """One way to satisfy a request: an allocation request that would fit as a whole.

    ``root`` is the uuid of the tree's root that it is anchored at; ``mappings`` says which providers
    serve which request group (suffix "" is the unsuffixed group).
    """

    root: str
    allocations: Allocations
    mappings: dict[str, list[str]]

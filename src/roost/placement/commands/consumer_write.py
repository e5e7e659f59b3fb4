"""The write of one consumer: all of its allocations afterwards."""

import msgspec

from roost.model.allocation import Allocations, GroupClaim
from roost.model.assignment import Assignment


class ConsumerWrite(msgspec.Struct, frozen=True, kw_only=True):
    """All allocations of one consumer after the write; without any the consumer is deleted.

    ``generation`` is the consumer's present one, None for a consumer that must not exist yet, or UNSET, which
    is not checked. ``consumer_type`` None keeps the present type. ``group`` makes the consumer a member of a
    server group, if the condition of the claim is met; None keeps the present group.

    ``assignment`` is the consumer's assignment of a node's hardware after the write; None removes the present
    one, UNSET keeps it (see `roost.placement.commands.assignment_condition`). ``beside`` is the digest of all
    assignments on the node that the assignment was fitted beside; None: it is not checked.
    ``mappings``: the providers of each request group. They are sent over HTTP, as the API takes them since
    1.34; no service stores them.
    """

    consumer: str
    allocations: Allocations
    project_id: str
    user_id: str
    consumer_type: str | None = None
    generation: int | msgspec.UnsetType | None = msgspec.UNSET
    group: GroupClaim | None = None
    assignment: Assignment | msgspec.UnsetType | None = msgspec.UNSET
    beside: str | None = None
    mappings: dict[str, list[str]] = {}

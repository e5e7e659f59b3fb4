"""The history of an instance: the states that it entered, and the requesters of actions."""

import msgspec


class Requester(msgspec.Struct, frozen=True):
    """The requester of an action: a user, the project of the user's token, and the id of the HTTP request."""

    user_id: str
    project_id: str
    request_id: str


class Transition(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An instance entered a ``state`` (`roost.model.instance`, `RESHAPED` or `GONE`) at ``at``, in seconds
    since the epoch.

    A transition to ``assigned`` has the number of the build attempt, its host and node, and the ``ordinal``
    of its claim in the records. Others belong to the attempt before them. ``reason`` and ``code`` are of
    failures, without secrets. ``by``: the operator that ended the attempt or the instance.
    """

    state: str
    at: float
    attempt: int = 0
    host: str | None = None
    node: str | None = None
    ordinal: int = 0
    reason: str | None = None
    code: str | None = None
    by: Requester | None = None


RESHAPED = "reshaped"
"""Not a state: the instance's allocations were moved to other providers of its node."""

GONE = "gone"
"""Not a state: the instance was removed from its cell's database."""

"""Instances and the requests to build them."""

import msgspec

from roost.model.spec import RequestSpec, Selection

ASSIGNED = "assigned"
"""A host shall build it; its agent has not reported yet."""
ACTIVE = "active"
"""It runs on its host."""
FAILED = "failed"
"""Its host could not build it; the cell's conductor has to find it another."""
ERROR = "error"
"""Given up; ``reason`` says why."""
DELETING = "deleting"
"""Its host shall destroy it."""
DESTROYED = "destroyed"
"""Gone from its host; its claim is still to be freed."""

UNSETTLED = (ASSIGNED, FAILED, DELETING, DESTROYED)
"""States in which somebody has work to do."""


class BuildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A user's request, kept from acceptance until each of its instances is in a cell.

    At least ``min_count`` of the instances must be placed, else none is.
    """

    request_id: str
    spec: RequestSpec
    instances: tuple[str, ...]
    min_count: int


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance as its cell has it.

    ``attempt`` counts the hosts it was assigned to, from 1. ``alternates`` are those left to try, each
    with its allocation request. ``host`` and ``node`` are None if it was never placed.
    """

    uuid: str
    request_id: str
    run: str
    project_id: str
    user_id: str
    flavor: str
    state: str
    host: str | None = None
    node: str | None = None
    attempt: int = 0
    alternates: tuple[Selection, ...] = ()
    reason: str | None = None


class Fault(msgspec.Struct, frozen=True):
    """Why an attempt at an instance failed. ``host`` is None if no host was found. ``at``: seconds since
    the epoch."""

    instance: str
    attempt: int
    host: str | None
    reason: str
    at: float


class BuildResult(msgspec.Struct, frozen=True):
    """What came of an attempt to build: ``failure`` is None if the instance runs."""

    instance: str
    host: str
    attempt: int
    failure: str | None = None

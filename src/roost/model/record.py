"""Records: the history of scheduler runs, claim attempts and their outcomes."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Step(msgspec.Struct, frozen=True):
    """One constraint that narrows the hosts (resource class, trait, filter); ``left`` hosts remain."""

    name: str
    left: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler run: one call of ``select_destinations``, successful or not.

    ``request_id`` is the id of the user's request, and ``global_request_id`` the one that the user's own
    client gave it, if it did.
    Times are seconds since the epoch. ``version`` is the ledger version that the run decided on, None if
    the placement service does not report versions. ``seed`` is that of the run's random numbers, None in
    records of versions that had none. ``node_version`` is that of the node journal, None
    without a journal. ``spec`` is the request spec as JSON data. The first of
    ``steps`` has the number of known hosts. ``refusal`` is None if all requested instances were placed.
    """

    id: str
    request_id: str
    project_id: str
    user_id: str
    instances: tuple[str, ...]
    spec: dict[str, object]
    started_at: float
    finished_at: float
    version: int | None
    global_request_id: str | None = None
    steps: tuple[Step, ...] = ()
    refusal: str | None = None
    seed: int | None = None
    node_version: int | None = None


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to place one instance on one host.

    ``result`` is one of the constants below; ``reason`` explains a refusal or failure. ``run`` is the id of
    the scheduler run that chose the host. ``at`` is in seconds since the epoch.
    """

    run: str
    request_id: str
    instance: str
    at: float
    host: str
    cell: str
    weight: float
    result: str
    reason: str | None = None


CLAIMED = "claimed"
"""The scheduler or a conductor claimed the host."""
REFUSED = "refused"
"""Placement refused the claim."""
FAILED = "failed"
"""The build failed on the host, and its claim was released."""


class RecordSink(Protocol):
    """Where runs and attempts are recorded; `roost.records.RecordQueue` is one."""

    def put(self, runs: Sequence[Run], attempts: Sequence[Attempt]) -> None:
        """Take records that are to be written. Never raises and never waits."""

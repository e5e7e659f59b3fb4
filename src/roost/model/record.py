"""Records: what the scheduler decided, what was tried, and why it went as it did."""

import msgspec


class Step(msgspec.Struct, frozen=True):
    """One step that narrows the hosts: a resource class, a trait, a filter. ``left`` remain after it."""

    name: str
    left: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the scheduler: one `select_destinations`, whatever came of it.

    Times are seconds since the epoch. ``version`` is the ledger's version that was decided at, None if
    the placement service does not tell. ``spec`` is the request spec as plain data. ``steps`` start with
    the number of hosts known. ``refusal`` is None if the run placed everything it had to.
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
    steps: tuple[Step, ...] = ()
    refusal: str | None = None


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try to put one instance on one host.

    ``result`` is ``claimed`` (the scheduler or a conductor claimed the host), ``refused`` (the claim was
    refused) or ``failed`` (the build failed and the claim was given up); ``reason`` says why it was
    refused or failed. ``run`` is the scheduler run that chose the host.
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
REFUSED = "refused"
FAILED = "failed"

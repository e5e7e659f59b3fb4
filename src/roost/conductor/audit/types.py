"""The audit as bodies and queries of HTTP requests and responses."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.vocabulary import MAX_INT
from roost.state.api_database.audit import AuditFinding, Repair
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE


class AuditQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of the findings or the repairs of the audit."""

    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Entries on a page.")] = DEFAULT_PAGE
    marker: Annotated[int, Meta(ge=0)] | None = None


class ShownAudit(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The last round of the audit, and a page of the findings that it did not repair.

    `round` is its number, 0 before the first one has ended; `ended_at` in seconds since 1970. `found` counts
    all findings, `instances` the compared instances. `unread`: the cells that could not be read, and why.
    `asks`: the question to an operator, if any. `next`: the marker of the next page, null on the last one.
    """

    round: int
    ended_at: float
    found: int
    instances: int
    unread: dict[str, str]
    asks: str | None
    findings: list[AuditFinding]
    next: int | None


class RepairPage(msgspec.Struct, forbid_unknown_fields=True):
    """Repairs, the newest first. `next`: the marker of the next page, null on the last one."""

    repairs: list[Repair]
    next: int | None


class WantedRound(msgspec.Struct, forbid_unknown_fields=True):
    """The body that asks for a round now. The round may make `most` repairs, even above the usual limit; with
    `dry_run` it makes none."""

    most: Annotated[int, Meta(ge=0, le=MAX_INT)] = 0
    dry_run: bool = False


class AskedRound(msgspec.Struct, forbid_unknown_fields=True):
    """The number of the requested round. Its findings are there when `round` of the audit has reached it."""

    round: int

"""The operations of the audit, their handlers and policy rules."""

from typing import Final, Protocol

from roost.conductor.audit.findings import DRY_RUN
from roost.conductor.audit.types import AskedRound, AuditQuery, RepairPage, ShownAudit, WantedRound
from roost.state.api_database.audit import ask_for_audit_round, read_audit_state, read_findings, read_repairs
from roost.state.api_database.kept_answers import Once
from roost.state.api_database.request_reads import Requests
from roost.web.errors import BadRequest
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import ADMIN, Rule
from roost.web.query import Query
from roost.web.request import Request, Response


class AuditService(Protocol):
    """The part of the conductor's service that the handlers need."""

    @property
    def requests(self) -> Requests: ...


async def show_audit(service: AuditService, req: Request, resp: Response) -> ShownAudit:
    """Show the findings of the last round of the audit that it did not repair, by page."""
    query: AuditQuery = req.query
    database = service.requests.database
    state = await database.read(read_audit_state())
    found = await database.read(read_findings(query.marker or 0, query.limit + 1))
    page = found[: query.limit]
    return ShownAudit(
        round=state.ended,
        ended_at=state.ended_at,
        found=state.report.findings,
        instances=state.report.instances,
        unread=state.report.unread,
        asks=state.report.asks,
        findings=[finding for _, finding in page],
        next=page[-1][0] if len(found) > query.limit else None,
    )


async def list_repairs(service: AuditService, req: Request, resp: Response) -> RepairPage:
    """List the repairs of the audit by page, the newest first, each with its proof."""
    query: AuditQuery = req.query
    found = await service.requests.database.read(read_repairs(query.marker, query.limit + 1))
    page = found[: query.limit]
    return RepairPage(page, page[-1].number if len(found) > query.limit else None)


async def ask_for_round(service: AuditService, req: Request, resp: Response) -> AskedRound:
    """Ask for a round of the audit now, and permit repairs that are many at once."""
    wanted: WantedRound = req.body
    if wanted.dry_run and wanted.most:
        raise BadRequest(f"a dry run makes no repairs: dry_run and most ({wanted.most}) exclude each other")
    asked = ask_for_audit_round(DRY_RUN if wanted.dry_run else wanted.most)
    once = Once(asked, lambda number: req.keyed(AskedRound(number)))
    return AskedRound(await service.requests.database.write(once))


PATH: Final = "/v1/audit"

AUDIT_RULES: Final = {f"conductor:audit:{verb}": ADMIN for verb in ("show", "repairs", "round")}
"""The policy rules as they are without a policy file: the audit shows instances of all projects."""


def _rule(verb: str) -> Rule:
    return Rule(f"conductor:audit:{verb}")


AUDIT_OPERATIONS: Final = (
    Operation("GET", PATH, _rule("show"), show_audit, query=Query(AuditQuery), answer=ShownAudit),
    Operation(
        "GET", f"{PATH}/repairs", _rule("repairs"), list_repairs, query=Query(AuditQuery), answer=RepairPage
    ),
    Operation(
        "POST",
        f"{PATH}/rounds",
        _rule("round"),
        ask_for_round,
        body=WantedRound,
        takes=(),  # curl -d says that its data is a form
        answer=AskedRound,
        status=202,
        creates=Creation(),
    ),
)

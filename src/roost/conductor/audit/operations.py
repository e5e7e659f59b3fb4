"""The operations of the audit, and their policy rules."""

from typing import Final

from roost.conductor.audit.handlers import ask_for_round, list_repairs, show_audit
from roost.conductor.audit.types import AskedRound, AuditQuery, RepairPage, ShownAudit, WantedRound
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import ADMIN, Rule
from roost.web.query import Query

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

"""What a project may see of the records of its own requests.

Nothing that tells how many hosts there are, what they are called, or who else is on them: of the request spec
what the user asked for, of attempts their number, times and results, of a refusal the public reason.
"""

import msgspec

from roost.model.reasons import redacted_reasons
from roost.model.record import Attempt, Run
from roost.records.rows import RunWithAttempts

NO_VALID_HOST = "No valid host was found."
"""The reason of a refusal that has no public reason."""

_OF_THE_USER = frozenset(
    {
        "project_id",
        "user_id",
        "flavor",
        "operation",
        "image",
        "volume_backed",
        "availability_zone",
        "required_traits",
        "forbidden_traits",
        "scheduler_hints",
    }
)
"""The fields of a request spec that a project sees. Others have names of hosts, networks and aggregates."""


def project_view(whole: RunWithAttempts) -> RunWithAttempts:
    """Return the part of a run that its project may see."""
    run = whole.run
    reasons = None if run.reasons is None else redacted_reasons(run.reasons)
    refusal = None if run.refusal is None else NO_VALID_HOST if reasons is None else reasons.sentence
    seen = Run(
        id=run.id,
        request_id=run.request_id,
        global_request_id=run.global_request_id,
        project_id=run.project_id,
        user_id=run.user_id,
        instances=run.instances,
        spec={name: value for name, value in run.spec.items() if name in _OF_THE_USER},
        started_at=run.started_at,
        finished_at=run.finished_at,
        version=None,
        refusal=refusal,
        min_count=run.min_count,
        reasons=reasons,
    )
    return RunWithAttempts(seen, tuple(map(_attempt, whole.attempts)))


def _attempt(attempt: Attempt) -> Attempt:
    return msgspec.structs.replace(attempt, host="", node="", cell="", weight=0.0, reason=None, version=None)

"""``/v1/scheduler/explain``: explains the outcome that a request would have."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from roost.model.reasons import Reasons
from roost.model.spec import Operation, UnreadKey
from roost.model.visibility import seen, seen_by_project
from roost.scheduler.api.refusals import as_http
from roost.scheduler.api.service import SchedulerService
from roost.scheduler.api.wire.language import language_of
from roost.web.errors import Unavailable
from roost.web.request import Request, Response

MOST_INSTANCES = 100
"""Most instances of an explained request."""


class ToExplain(msgspec.Struct, forbid_unknown_fields=True):
    """A request for hosts for `count` equal instances, in the language of Roost or of Nova."""

    request_spec: dict[str, Any]
    count: Annotated[int, Meta(ge=1, le=MOST_INSTANCES)] = 1
    operation: Operation | None = None


class ExplainedRequest(Reasons, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome that a request would have, with reasons. `warnings` are its keys that have no effect."""

    warnings: tuple[UnreadKey, ...] = ()


@seen_by_project(ExplainedRequest)
def _explained(found: ExplainedRequest) -> ExplainedRequest:
    fields = {name: getattr(found, name) for name in Reasons.__struct_fields__}
    return ExplainedRequest(**msgspec.structs.asdict(seen(Reasons(**fields))), warnings=found.warnings)


async def explain(service: SchedulerService, req: Request, resp: Response) -> ExplainedRequest:
    """Explain the outcome of a request: hosts left by each step, near misses, changes that make it fit.

    The request is really decided, on a copy of the state: nothing is claimed, and nothing is recorded. For a
    request that fits, the response has the weights of the best hosts.
    """
    wanted: ToExplain = req.body
    with as_http(req.viewer):
        language = language_of(wanted.request_spec, service.scheduler.table)
        asked = language.read_spec(wanted.request_spec, wanted.operation)
        await service.refresh()
        warnings = () if asked.of_nova else await service.scheduler.check_request(asked.spec)
        reasons = await service.scheduler.explain(asked.spec, wanted.count)
    if reasons is None:
        raise Unavailable(
            "The request cannot be explained now: too many wait, or hosts come from the cells' databases."
        )
    return ExplainedRequest(**msgspec.structs.asdict(reasons), warnings=warnings)

"""``/v1/scheduler/check``: checks that a request can be served at all, and finds keys without effect."""

from typing import Any

import msgspec

from roost.model.spec import Operation
from roost.scheduler.api.refusals import as_http
from roost.scheduler.api.service import SchedulerService
from roost.scheduler.api.wire.answers import CheckedRequest
from roost.scheduler.api.wire.language import language_of
from roost.web.request import Request, Response


class ToCheck(msgspec.Struct, forbid_unknown_fields=True):
    """A request for hosts, in the language of Roost or of Nova."""

    request_spec: dict[str, Any]
    operation: Operation | None = None


async def check(service: SchedulerService, req: Request, resp: Response) -> CheckedRequest:
    """Check that a request can be served on some hosts, and list its keys that have no effect.

    A request that can never be served, or with a key that can only be a mistake, is refused. Free room is not
    checked: nothing is claimed, and nothing is recorded.
    """
    wanted: ToCheck = req.body
    with as_http(req.viewer):
        language = language_of(wanted.request_spec, service.scheduler.table)
        spec = language.read_spec(wanted.request_spec, wanted.operation).spec
        await service.refresh()
        return CheckedRequest(await service.scheduler.check_request(spec))

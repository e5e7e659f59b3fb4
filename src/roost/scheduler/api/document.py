"""The OpenAPI document of the scheduler's operations, where a process serves nothing else."""

from functools import cache
from typing import Final

import msgspec

from roost.scheduler.api.conventions import SchedulingConventions
from roost.scheduler.api.operations import OPERATIONS
from roost.web.health_operations import DOCUMENTED
from roost.web.openapi import OpenApi, describe
from roost.web.operation import OPEN, Operation
from roost.web.request import Request, Response


async def describe_scheduler_api(service: object, req: Request, resp: Response) -> msgspec.Raw:
    """This document."""
    return document()


DOCUMENT: Final = Operation("GET", "/v1/openapi.json", OPEN, describe_scheduler_api, answer=OpenApi)


@cache
def document() -> msgspec.Raw:
    """Return the document as JSON."""
    described = describe(
        (*OPERATIONS, DOCUMENT, *DOCUMENTED),
        SchedulingConventions("scheduler"),
        title="Roost's scheduler",
        text="Hosts are chosen for instances and claimed in placement; runs are recorded and explained.",
    )
    return msgspec.Raw(msgspec.json.encode(described))

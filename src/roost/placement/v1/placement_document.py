"""``/v1/placement/openapi.json``: the OpenAPI document of the Placement API at one microversion."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.placement.v1.service import V1Service
from roost.placement.wire.microversions import parse_version
from roost.web.request import Request, Response


class VersionQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The microversion that a client asks for."""

    microversion: Annotated[str, Meta(description="Such as `1.39`, or `latest`.", max_length=20)] = "latest"


async def describe_placement_api(service: V1Service, req: Request, resp: Response) -> msgspec.Raw:
    """The document of the Placement API at a microversion."""
    return service.placement_document(parse_version(f"placement {req.query.microversion}"))

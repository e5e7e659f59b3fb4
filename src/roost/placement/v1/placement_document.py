"""``/v1/placement/openapi.json``: the OpenAPI document of the Placement API at one microversion."""

from functools import cache
from typing import Annotated

import msgspec
from msgspec import Meta

from roost.placement.http.conventions import PlacementConventions
from roost.placement.http.microversions import parse_version, version_text
from roost.placement.http.operations import OPERATIONS
from roost.placement.v1.service import Service
from roost.web.openapi import describe
from roost.web.request import Request, Response


class VersionQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The microversion that a client asks for."""

    microversion: Annotated[str, Meta(description="Such as `1.39`, or `latest`.", max_length=20)] = "latest"


async def describe_placement_api(service: Service, req: Request, resp: Response) -> msgspec.Raw:
    """The document of the Placement API at a microversion."""
    return document_at(parse_version(f"placement {req.query.microversion}"))


@cache
def document_at(version: int) -> msgspec.Raw:
    """The document as JSON, with the operations, bodies and queries of a version (its minor number)."""
    present = [operation.at(version) for operation in OPERATIONS if operation.since <= version]
    document = describe(
        present,
        PlacementConventions(),
        title="Placement API",
        text="Requests name the microversion in the header OpenStack-API-Version.",
        version=version_text(version),
    )
    return msgspec.Raw(msgspec.json.encode(document))

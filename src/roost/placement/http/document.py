"""The OpenAPI document of the Placement API at one microversion."""

from functools import cache

import msgspec

from roost.placement.http.conventions import PlacementConventions
from roost.placement.http.operations import OPERATIONS
from roost.placement.wire.microversions import version_text
from roost.web.openapi import describe


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

"""``/allocations`` and ``/resource_providers/{uuid}/allocations``: by consumer, and on one provider."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from roost.ledger import Held
from roost.placement.allocations import HeldByConsumer, allocations_of_consumer, allocations_on_provider
from roost.placement.commands.allocations import DeleteAllocations, WriteAllocations
from roost.placement.errors import BadRequest, NotFound
from roost.placement.http.answers import answer, answer_empty, members_in_parts
from roost.placement.http.service import PlacementApi
from roost.placement.moments import headers_of
from roost.placement.wire.microversions import PlacementRequest, Response
from roost.placement.wire.uuids import canonical_uuid, is_uuid_like

CONSUMER_FIELDS = {
    "project_id": ("project_id", 12),
    "user_id": ("user_id", 12),
    "consumer_generation": ("generation", 28),
    "consumer_type": ("consumer_type", 38),
}
"""The members that describe a consumer -> the field of `Consumer`, and the first microversion."""


async def write_allocations(service: PlacementApi, req: PlacementRequest, resp: Response) -> None:
    """Write the allocations of several consumers, all of them or none."""
    body = req.body
    writes = tuple(each.write(consumer) for consumer, each in body.items())
    resp.set_headers(headers_of(await service.ledger.execute(WriteAllocations(writes))))
    answer_empty(resp)


async def show_allocations(
    service: PlacementApi, req: PlacementRequest, resp: Response, consumer: str
) -> None:
    """Show the allocations of a consumer."""
    found = await service.ledger.database.read(
        partial(allocations_of_consumer, consumer=consumer), by_key=True
    )
    document = {"allocations": {}} if found is None else _describe(req, found)
    answer(req, resp, document, modified=None if found is None else found.written_at)


async def set_allocations(
    service: PlacementApi, req: PlacementRequest, resp: Response, consumer: str
) -> None:
    """Replace the allocations of a consumer."""
    if not is_uuid_like(consumer):
        raise BadRequest(f"Malformed consumer_uuid: {consumer}")
    body = req.body
    write = body.write(
        canonical_uuid(consumer),
        service.options.incomplete_consumer_project_id,
        service.options.incomplete_consumer_user_id,
    )
    resp.set_headers(headers_of(await service.ledger.execute(WriteAllocations((write,)))))
    answer_empty(resp)


async def delete_allocations(
    service: PlacementApi, req: PlacementRequest, resp: Response, consumer: str
) -> None:
    """Delete all allocations of a consumer."""
    await service.ledger.execute(DeleteAllocations(consumer))
    answer_empty(resp)


async def list_provider_allocations(
    service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str
) -> None:
    """List the allocations on a resource provider, by consumer."""
    found = await service.ledger.database.read(partial(allocations_on_provider, provider=uuid))
    if found is None:
        raise NotFound(f"No resource provider with uuid {uuid} found")
    members = await members_in_parts(
        found.held.items(), lambda some: _describe_consumers(req, uuid, dict(some))
    )
    document = {
        "allocations": msgspec.Raw(members),
        "resource_provider_generation": found.generation,
    }
    answer(req, resp, document, modified=found.written_at)


def _describe(req: PlacementRequest, found: HeldByConsumer) -> dict[str, Any]:
    allocations = {
        provider: {"resources": resources, "generation": found.generations[provider]}
        for provider, resources in found.held.allocations.items()
    }
    document: dict[str, Any] = {"allocations": allocations}
    for name, (field, since) in CONSUMER_FIELDS.items():
        if since <= req.version:
            document[name] = getattr(found.held.consumer, field)
    return document


def _describe_consumers(req: PlacementRequest, provider: str, found: Mapping[str, Held]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for consumer, held in found.items():
        shown[consumer] = {"resources": held.allocations[provider]}
        if req.version >= CONSUMER_FIELDS["consumer_generation"][1]:
            shown[consumer]["consumer_generation"] = held.consumer.generation
    return shown

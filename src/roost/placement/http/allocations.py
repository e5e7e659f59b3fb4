"""``/allocations`` and ``/resource_providers/{uuid}/allocations``: who holds what."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from roost.ledger import Held
from roost.placement.allocations import HeldByConsumer, allocations_of_consumer, allocations_on_provider
from roost.placement.commands.allocations import DeleteAllocations, WriteAllocations
from roost.placement.errors import BadRequest, NotFound
from roost.placement.http.answers import answer, answer_empty
from roost.placement.http.request import Request, Response
from roost.placement.http.resource import Resource, read_body
from roost.placement.http.uuids import canonical_uuid, is_uuid_like

CONSUMER_FIELDS = {
    "project_id": ("project_id", 12),
    "user_id": ("user_id", 12),
    "consumer_generation": ("generation", 28),
    "consumer_type": ("consumer_type", 38),
}
"""What is told of a consumer: the field on the wire -> ours, and since which version."""


class Allocations(Resource):
    """/allocations"""

    async def on_post(self, req: Request, resp: Response) -> None:
        self.policy.authorise(req.identity, "allocations:manage")
        body = await read_body(req)
        writes = tuple(each.write(consumer) for consumer, each in body.items())
        await self.ledger.execute(WriteAllocations(writes))
        answer_empty(resp)


class ConsumerAllocations(Resource):
    """/allocations/{consumer}"""

    async def on_get(self, req: Request, resp: Response, consumer: str) -> None:
        self.policy.authorise(req.identity, "allocations:list")
        found = await self.ledger.database.read(partial(allocations_of_consumer, consumer=consumer))
        document = {"allocations": {}} if found is None else _describe(req, found)
        answer(req, resp, document, modified=None if found is None else found.written_at)

    async def on_put(self, req: Request, resp: Response, consumer: str) -> None:
        self.policy.authorise(req.identity, "allocations:update")
        if not is_uuid_like(consumer):
            raise BadRequest(f"Malformed consumer_uuid: {consumer}")
        body = await read_body(req)
        write = body.write(
            canonical_uuid(consumer),
            self.options.incomplete_consumer_project_id,
            self.options.incomplete_consumer_user_id,
        )
        await self.ledger.execute(WriteAllocations((write,)))
        answer_empty(resp)

    async def on_delete(self, req: Request, resp: Response, consumer: str) -> None:
        self.policy.authorise(req.identity, "allocations:delete")
        await self.ledger.execute(DeleteAllocations(consumer))
        answer_empty(resp)


class ProviderAllocations(Resource):
    """/resource_providers/{uuid}/allocations"""

    async def on_get(self, req: Request, resp: Response, uuid: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:allocations:list")
        found = await self.ledger.database.read(partial(allocations_on_provider, provider=uuid))
        if found is None:
            raise NotFound(f"No resource provider with uuid {uuid} found")
        document = {
            "allocations": _describe_consumers(req, uuid, found.held),
            "resource_provider_generation": found.generation,
        }
        answer(req, resp, document, modified=found.written_at)


def _describe(req: Request, found: HeldByConsumer) -> dict[str, Any]:
    allocations = {
        provider: {"resources": resources, "generation": found.generations[provider]}
        for provider, resources in found.held.allocations.items()
    }
    document: dict[str, Any] = {"allocations": allocations}
    for name, (field, since) in CONSUMER_FIELDS.items():
        if since <= req.version:
            document[name] = getattr(found.held.consumer, field)
    return document


def _describe_consumers(req: Request, provider: str, found: Mapping[str, Held]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for consumer, held in found.items():
        shown[consumer] = {"resources": held.allocations[provider]}
        if req.version >= CONSUMER_FIELDS["consumer_generation"][1]:
            shown[consumer]["consumer_generation"] = held.consumer.generation
    return shown

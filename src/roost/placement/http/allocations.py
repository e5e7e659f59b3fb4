"""``/allocations`` and ``/resource_providers/{uuid}/allocations``: who holds what."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.ledger import Held
from roost.ledger.holdings import held_by, held_on
from roost.placement.commands.allocations import DeleteAllocations, WriteAllocations
from roost.placement.commands.holders import written_at
from roost.placement.errors import BadRequest
from roost.placement.http.answers import answer, answer_empty
from roost.placement.http.complaints import is_uuid_like, plain_uuid
from roost.placement.http.request import Request, Response
from roost.placement.http.resource import Resource, provider_row, read_body

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
        found, modified = await self.ledger.database.read(
            lambda connection: (held_by(connection, (consumer,)), written_at(connection, (consumer,)))
        )
        fleet = await self.ledger.current()
        held = found.get(consumer)
        document = {"allocations": {}} if held is None else _describe(req, fleet, held)
        answer(req, resp, document, modified=modified)

    async def on_put(self, req: Request, resp: Response, consumer: str) -> None:
        self.policy.authorise(req.identity, "allocations:update")
        if not is_uuid_like(consumer):
            raise BadRequest(f"Malformed consumer_uuid: {consumer}")
        body = await read_body(req)
        write = body.write(
            plain_uuid(consumer),
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
        provider_row(await self.ledger.current(), uuid)
        found, modified = await self.ledger.database.read(lambda connection: _held_on(connection, uuid))
        fleet = await self.ledger.current()
        document = {
            "allocations": _describe_consumers(req, uuid, found),
            "resource_provider_generation": fleet.generation.item(provider_row(fleet, uuid)),
        }
        answer(req, resp, document, modified=modified)


def _held_on(connection: Connection, provider: str) -> tuple[Mapping[str, Held], float | None]:
    found = held_on(connection, provider)
    return found, written_at(connection, found)


def _describe(req: Request, fleet: Fleet, held: Held) -> dict[str, Any]:
    allocations = {
        provider: {"resources": resources, "generation": fleet.generation.item(fleet.row(provider))}
        for provider, resources in held.allocations.items()
        if provider in fleet
    }
    document: dict[str, Any] = {"allocations": allocations}
    for name, (field, since) in CONSUMER_FIELDS.items():
        if since <= req.version:
            document[name] = getattr(held.consumer, field)
    return document


def _describe_consumers(req: Request, provider: str, found: Mapping[str, Held]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for consumer, held in found.items():
        shown[consumer] = {"resources": held.allocations[provider]}
        if req.version >= CONSUMER_FIELDS["consumer_generation"][1]:
            shown[consumer]["consumer_generation"] = held.consumer.generation
    return shown

"""``/resource_providers/{uuid}/aggregates``."""

from collections.abc import Sequence
from typing import Any

from roost.placement.commands.traits_and_aggregates import SetAggregates
from roost.placement.http.answers import answer
from roost.placement.http.microversions import Since
from roost.placement.http.request import Request, Response
from roost.placement.http.resource import Resource, provider_row, read_body_for


class Aggregates(Resource):
    """/resource_providers/{uuid}/aggregates"""

    async def on_get(self, req: Request, resp: Response, uuid: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:aggregates:list")
        fleet = await self.ledger.current()
        row = provider_row(fleet, uuid)
        answer(req, resp, _describe(req, fleet.aggregates_of(row), fleet.generation.item(row)))

    async def on_put(self, req: Request, resp: Response, uuid: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:aggregates:update")
        body = await read_body_for(self, req, uuid)
        if req.version >= Since.AGGREGATE_GENERATIONS:
            aggregates = body.aggregates
            command = SetAggregates(uuid, frozenset(aggregates), body.resource_provider_generation)
        else:
            aggregates = body
            command = SetAggregates(uuid, frozenset(aggregates), raises=False)
        generation = await self.ledger.execute(command)
        answer(req, resp, _describe(req, aggregates, generation))


def _describe(req: Request, aggregates: Sequence[str], generation: int) -> dict[str, Any]:
    document: dict[str, Any] = {"aggregates": aggregates}
    if req.version >= Since.AGGREGATE_GENERATIONS:
        document["resource_provider_generation"] = generation
    return document

"""``/resource_providers/{uuid}/aggregates``."""

from typing import Any

from roost.placement.commands.belongings import SetAggregates
from roost.placement.http.answers import answer
from roost.placement.http.microversions import Since
from roost.placement.http.request import Request, Response
from roost.placement.http.resource import Resource, provider_row, read_body


class Aggregates(Resource):
    """/resource_providers/{uuid}/aggregates"""

    async def on_get(self, req: Request, resp: Response, uuid: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:aggregates:list")
        fleet = await self.ledger.current()
        row = provider_row(fleet, uuid)
        answer(req, resp, _describe(req, fleet.aggregates_of(row), fleet.generation.item(row)))

    async def on_put(self, req: Request, resp: Response, uuid: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:aggregates:update")
        body = await read_body(req)
        if req.version >= Since.AGGREGATE_GENERATIONS:
            command = SetAggregates(uuid, frozenset(body.aggregates), body.resource_provider_generation)
        else:
            command = SetAggregates(uuid, frozenset(body), raises=False)
        generation = await self.ledger.execute(command)
        answer(req, resp, _describe(req, sorted(command.aggregates), generation))


def _describe(req: Request, aggregates: list[str] | tuple[str, ...], generation: int) -> dict[str, Any]:
    document: dict[str, Any] = {"aggregates": aggregates}
    if req.version >= Since.AGGREGATE_GENERATIONS:
        document["resource_provider_generation"] = generation
    return document

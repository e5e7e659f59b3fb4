"""``/resource_providers/{uuid}/aggregates``."""

from collections.abc import Sequence
from typing import Any

from roost.placement.commands.traits_and_aggregates import SetAggregates
from roost.placement.http.answers import answer
from roost.placement.http.service import PlacementApi
from roost.placement.known_names import provider_row
from roost.placement.wire.microversions import PlacementRequest, Response, Since


async def list_aggregates(service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str) -> None:
    """List the aggregates of a resource provider."""
    fleet = await service.ledger.current()
    row = provider_row(fleet, uuid)
    answer(req, resp, _describe(req, fleet.aggregates_of(row), fleet.generation.item(row)))


async def set_aggregates(service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str) -> None:
    """Replace the aggregates of a resource provider."""
    body = req.body
    if req.version >= Since.AGGREGATE_GENERATIONS:
        aggregates = body.aggregates
        command = SetAggregates(uuid, frozenset(aggregates), body.resource_provider_generation)
    else:
        aggregates = body
        command = SetAggregates(uuid, frozenset(aggregates), raises=False)
    generation = await service.ledger.execute(command)
    answer(req, resp, _describe(req, aggregates, generation))


def _describe(req: PlacementRequest, aggregates: Sequence[str], generation: int) -> dict[str, Any]:
    document: dict[str, Any] = {"aggregates": aggregates}
    if req.version >= Since.AGGREGATE_GENERATIONS:
        document["resource_provider_generation"] = generation
    return document

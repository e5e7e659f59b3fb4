"""``/reshaper``: inventories and allocations of several providers at once."""

from roost.placement.commands.reshape import NewInventories, Reshape
from roost.placement.http.answers import answer_empty
from roost.placement.http.service import PlacementApi
from roost.placement.wire.microversions import PlacementRequest, Response


async def reshape(service: PlacementApi, req: PlacementRequest, resp: Response) -> None:
    """Replace inventories and allocations of several resource providers at once."""
    body = req.body
    inventories = tuple(
        NewInventories(provider, each.by_class, each.resource_provider_generation)
        for provider, each in body.inventories.items()
    )
    writes = tuple(each.write(consumer) for consumer, each in body.allocations.items())
    await service.ledger.execute(Reshape(inventories, writes))
    answer_empty(resp)

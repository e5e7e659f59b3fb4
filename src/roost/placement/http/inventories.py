"""``/resource_providers/{uuid}/inventories``: the inventories of a provider."""

from collections.abc import Mapping
from typing import Any

import msgspec

from roost.model.inventory import Inventory
from roost.placement.commands.inventories import (
    AddInventory,
    DeleteInventory,
    SetInventories,
    SetInventory,
)
from roost.placement.errors import NotFound
from roost.placement.http.answers import answer, answer_empty, locate
from roost.placement.http.service import PlacementApi
from roost.placement.known_names import provider_row
from roost.placement.wire.microversions import PlacementRequest, Response, Since


async def list_inventories(service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str) -> None:
    """List the inventories of a resource provider."""
    fleet = await service.ledger.current()
    row = provider_row(fleet, uuid)
    document = _describe_all(fleet.inventories(row), fleet.generation.item(row))
    answer(req, resp, document, modified=fleet.changed_at.item(row))


async def add_inventory(service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str) -> None:
    """Add the inventory of one resource class to a resource provider."""
    body = req.body
    generation = await service.ledger.execute(
        AddInventory(uuid, body.resource_class, body.inventory, may_reserve_all=_may_reserve_all(req))
    )
    locate(req, resp, f"/resource_providers/{uuid}/inventories/{body.resource_class}")
    answer(req, resp, _describe(body.inventory, generation), status=201)


async def set_inventories(service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str) -> None:
    """Replace all inventories of a resource provider."""
    body = req.body
    inventories = body.by_class
    generation = await service.ledger.execute(
        SetInventories(uuid, inventories, body.resource_provider_generation, _may_reserve_all(req))
    )
    answer(req, resp, _describe_all(inventories, generation))


async def delete_inventories(service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str) -> None:
    """Delete all inventories of a resource provider."""
    await service.ledger.execute(SetInventories(uuid, {}))
    answer_empty(resp)


async def show_inventory(
    service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str, resource_class: str
) -> None:
    """Show one inventory of a resource provider."""
    fleet = await service.ledger.current()
    row = provider_row(fleet, uuid)
    inventory = fleet.inventory_columns(resource_class).inventory(row)
    if inventory is None:
        raise NotFound(f"No inventory of class {resource_class} for {uuid}")
    document = _describe(inventory, fleet.generation.item(row))
    answer(req, resp, document, modified=fleet.changed_at.item(row))


async def set_inventory(
    service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str, resource_class: str
) -> None:
    """Replace one inventory of a resource provider."""
    body = req.body
    command = SetInventory(
        uuid, resource_class, body.inventory, body.resource_provider_generation, _may_reserve_all(req)
    )
    generation = await service.ledger.execute(command)
    answer(req, resp, _describe(body.inventory, generation))


async def delete_inventory(
    service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str, resource_class: str
) -> None:
    """Delete one inventory of a resource provider."""
    await service.ledger.execute(DeleteInventory(uuid, resource_class))
    answer_empty(resp)


def _may_reserve_all(req: PlacementRequest) -> bool:
    return req.version >= Since.RESERVED_MAY_EQUAL_TOTAL


def _describe(inventory: Inventory, generation: int) -> dict[str, Any]:
    return {**msgspec.structs.asdict(inventory), "resource_provider_generation": generation}


def _describe_all(inventories: Mapping[str, Inventory], generation: int) -> dict[str, Any]:
    return {"resource_provider_generation": generation, "inventories": inventories}

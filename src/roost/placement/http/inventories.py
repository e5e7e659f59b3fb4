"""``/resource_providers/{uuid}/inventories``: what a provider has."""

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
from roost.placement.http.microversions import Since
from roost.placement.http.request import Request, Response
from roost.placement.http.resource import Resource, provider_row, read_body_for


class Inventories(Resource):
    """/resource_providers/{uuid}/inventories"""

    async def on_get(self, req: Request, resp: Response, uuid: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:inventories:list")
        fleet = await self.ledger.current()
        row = provider_row(fleet, uuid)
        document = _describe_all(fleet.inventories(row), fleet.generation.item(row))
        answer(req, resp, document, modified=fleet.changed_at.item(row))

    async def on_post(self, req: Request, resp: Response, uuid: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:inventories:create")
        body = await read_body_for(self, req, uuid)
        generation = await self.ledger.execute(
            AddInventory(uuid, body.resource_class, body.inventory, may_reserve_all=_may_reserve_all(req))
        )
        locate(req, resp, f"/resource_providers/{uuid}/inventories/{body.resource_class}")
        answer(req, resp, _describe(body.inventory, generation), status=201)

    async def on_put(self, req: Request, resp: Response, uuid: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:inventories:update")
        body = await read_body_for(self, req, uuid)
        inventories = body.by_class
        generation = await self.ledger.execute(
            SetInventories(uuid, inventories, body.resource_provider_generation, _may_reserve_all(req))
        )
        answer(req, resp, _describe_all(inventories, generation))

    async def on_delete(self, req: Request, resp: Response, uuid: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:inventories:delete")
        await self.ledger.execute(SetInventories(uuid, {}))
        answer_empty(resp)


class InventoryOfClass(Resource):
    """/resource_providers/{uuid}/inventories/{resource_class}"""

    async def on_get(self, req: Request, resp: Response, uuid: str, resource_class: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:inventories:show")
        fleet = await self.ledger.current()
        row = provider_row(fleet, uuid)
        inventory = fleet.inventory_columns(resource_class).inventory(row)
        if inventory is None:
            raise NotFound(f"No inventory of class {resource_class} for {uuid}")
        document = _describe(inventory, fleet.generation.item(row))
        answer(req, resp, document, modified=fleet.changed_at.item(row))

    async def on_put(self, req: Request, resp: Response, uuid: str, resource_class: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:inventories:update")
        body = await read_body_for(self, req, uuid)
        command = SetInventory(
            uuid, resource_class, body.inventory, body.resource_provider_generation, _may_reserve_all(req)
        )
        generation = await self.ledger.execute(command)
        answer(req, resp, _describe(body.inventory, generation))

    async def on_delete(self, req: Request, resp: Response, uuid: str, resource_class: str) -> None:
        self.policy.authorise(req.identity, "resource_providers:inventories:delete")
        await self.ledger.execute(DeleteInventory(uuid, resource_class))
        answer_empty(resp)


def _may_reserve_all(req: Request) -> bool:
    return req.version >= Since.RESERVED_MAY_EQUAL_TOTAL


def _describe(inventory: Inventory, generation: int) -> dict[str, Any]:
    return {**msgspec.structs.asdict(inventory), "resource_provider_generation": generation}


def _describe_all(inventories: Mapping[str, Inventory], generation: int) -> dict[str, Any]:
    return {"resource_provider_generation": generation, "inventories": inventories}

"""``/resource_classes``."""

from typing import Any

import msgspec

from roost.fleet import Fleet
from roost.placement.allocations import consumers_of_class
from roost.placement.commands.names import AddResourceClass, DeleteResourceClass, RenameResourceClass
from roost.placement.errors import ConcurrentUpdate, NotFound
from roost.placement.http.answers import answer, answer_empty, answer_text, href, locate
from roost.placement.http.bodies import NewClass
from roost.placement.http.body_decoder import convert
from roost.placement.http.service import PlacementApi
from roost.placement.queries.budget import unchecked
from roost.placement.wire.microversions import PlacementRequest, Response

_LISTED = 4
"""Units of work of a class in a list."""

_TRIES_TO_RENAME = 10


async def list_resource_classes(service: PlacementApi, req: PlacementRequest, resp: Response) -> None:
    """List resource classes."""

    def compute(fleet: Fleet) -> bytes:
        fleet.meter.spend(_LISTED * len(fleet.resource_classes))
        found = [_describe(req, name) for name in fleet.resource_classes]
        return msgspec.json.encode({"resource_classes": found})

    key = ("resource classes", req.prefix, req.version)
    answer_text(req, resp, await service.queries.answer(key, unchecked, compute))


async def create_resource_class(service: PlacementApi, req: PlacementRequest, resp: Response) -> None:
    """Create a custom resource class."""
    body = req.body
    await service.ledger.execute(AddResourceClass(body.name, must_be_new=True))
    answer_empty(resp, 201)
    locate(req, resp, f"/resource_classes/{body.name}")


async def show_resource_class(
    service: PlacementApi, req: PlacementRequest, resp: Response, name: str
) -> None:
    """Show a resource class."""
    fleet = await service.ledger.current()
    if name not in fleet.resource_classes:
        raise NotFound(f"No such resource class {name}.")
    answer(req, resp, _describe(req, name))


async def update_resource_class(
    service: PlacementApi, req: PlacementRequest, resp: Response, name: str
) -> None:
    """Make sure that a custom resource class exists. Up to 1.6: rename it."""
    body = req.body
    if body is not None:
        await _rename(service, name, body.name)
        answer(req, resp, _describe(req, body.name))
        return
    convert({"name": name}, NewClass)
    is_new = await service.ledger.execute(AddResourceClass(name))
    answer_empty(resp, 201 if is_new else 204)
    locate(req, resp, f"/resource_classes/{name}")


async def delete_resource_class(
    service: PlacementApi, req: PlacementRequest, resp: Response, name: str
) -> None:
    """Delete a custom resource class."""
    await service.ledger.execute(DeleteResourceClass(name))
    answer_empty(resp)


async def _rename(service: PlacementApi, name: str, new_name: str) -> None:
    """Rename a class. Repeat it if another consumer has allocated of the class meanwhile."""
    tries = _TRIES_TO_RENAME
    while tries:
        tries -= 1
        holders = await service.ledger.database.read(lambda connection: consumers_of_class(connection, name))
        try:
            await service.ledger.execute(RenameResourceClass(name, new_name, holders))
            tries = 0
        except ConcurrentUpdate:
            if not tries:
                raise


def _describe(req: PlacementRequest, name: str) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": href(req, f"/resource_classes/{name}")}]}

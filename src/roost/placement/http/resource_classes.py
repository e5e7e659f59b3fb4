"""``/resource_classes``."""

from typing import Any

from roost.placement.allocations import consumers_of_class
from roost.placement.commands.names import AddResourceClass, DeleteResourceClass, RenameResourceClass
from roost.placement.errors import ConcurrentUpdate, NotFound
from roost.placement.http.answers import answer, answer_empty, href, locate
from roost.placement.http.bodies import NewClass
from roost.placement.http.decoding import convert
from roost.placement.http.request import Request, Response
from roost.placement.http.resource import Resource, read_body

_TRIES_TO_RENAME = 10


class ResourceClasses(Resource):
    """/resource_classes"""

    async def on_get(self, req: Request, resp: Response) -> None:
        self.policy.authorise(req.identity, "resource_classes:list")
        fleet = await self.ledger.current()
        answer(req, resp, {"resource_classes": [_describe(req, name) for name in fleet.resource_classes]})

    async def on_post(self, req: Request, resp: Response) -> None:
        self.policy.authorise(req.identity, "resource_classes:create")
        body = await read_body(req)
        await self.ledger.execute(AddResourceClass(body.name, must_be_new=True))
        answer_empty(resp, 201)
        locate(req, resp, f"/resource_classes/{body.name}")


class ResourceClass(Resource):
    """/resource_classes/{name}"""

    async def on_get(self, req: Request, resp: Response, name: str) -> None:
        self.policy.authorise(req.identity, "resource_classes:show")
        fleet = await self.ledger.current()
        if name not in fleet.resource_classes:
            raise NotFound(f"No such resource class {name}.")
        answer(req, resp, _describe(req, name))

    async def on_put(self, req: Request, resp: Response, name: str) -> None:
        """Up to 1.6 this renames; from 1.7, without a body, it makes sure that the class is there."""
        self.policy.authorise(req.identity, "resource_classes:update")
        body = await read_body(req)
        if body is not None:
            await self._rename(name, body.name)
            answer(req, resp, _describe(req, body.name))
            return
        convert({"name": name}, NewClass)
        is_new = await self.ledger.execute(AddResourceClass(name))
        answer_empty(resp, 201 if is_new else 204)
        locate(req, resp, f"/resource_classes/{name}")

    async def on_delete(self, req: Request, resp: Response, name: str) -> None:
        self.policy.authorise(req.identity, "resource_classes:delete")
        await self.ledger.execute(DeleteResourceClass(name))
        answer_empty(resp)

    async def _rename(self, name: str, new_name: str) -> None:
        """Rename, and if somebody claims some of the class meanwhile, do it again."""
        tries = _TRIES_TO_RENAME
        while tries:
            tries -= 1
            holders = await self.ledger.database.read(lambda connection: consumers_of_class(connection, name))
            try:
                await self.ledger.execute(RenameResourceClass(name, new_name, holders))
                tries = 0
            except ConcurrentUpdate:
                if not tries:
                    raise


def _describe(req: Request, name: str) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": href(req, f"/resource_classes/{name}")}]}

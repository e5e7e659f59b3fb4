"""``/reshaper``: inventories and allocations of several providers at once."""

from roost.placement.commands.reshape import NewInventories, Reshape
from roost.placement.http.answers import answer_empty
from roost.placement.http.request import Request, Response
from roost.placement.http.resource import Resource, read_body


class Reshaper(Resource):
    """/reshaper"""

    async def on_post(self, req: Request, resp: Response) -> None:
        self.policy.authorise(req.identity, "reshaper:reshape")
        body = await read_body(req)
        inventories = tuple(
            NewInventories(provider, each.by_class, each.resource_provider_generation)
            for provider, each in body.inventories.items()
        )
        writes = tuple(each.write(consumer) for consumer, each in body.allocations.items())
        await self.ledger.execute(Reshape(inventories, writes))
        answer_empty(resp)

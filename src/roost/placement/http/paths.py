"""Which paths can name something at all."""

from roost.placement.errors import NotFound
from roost.placement.http.request import Request, Response


class Paths:
    """Middleware, after the gate: a path with an empty part names nothing.

    The router would take the empty part for a name: that of the class in ``/resource_classes/``.
    """

    async def process_request(self, req: Request, resp: Response) -> None:
        if "" in req.path.split("/")[1:] and req.path != "/":
            raise NotFound

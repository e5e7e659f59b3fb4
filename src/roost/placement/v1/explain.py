"""``/v1/explain``: why there are so few candidates."""

from roost.placement.http.request import Request, Response
from roost.placement.v1.resource import Resource


class Explain(Resource):
    """/v1/explain"""

    async def on_get(self, req: Request, resp: Response) -> None:
        raise NotImplementedError

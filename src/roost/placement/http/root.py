"""``/``: which versions there are."""

from roost.placement.http.answers import answer
from roost.placement.http.microversions import LATEST, version_text
from roost.placement.http.request import Request, Response
from roost.placement.http.resource import Resource

_VERSIONS = {
    "versions": [
        {
            "id": "v1.0",
            "min_version": version_text(0),
            "max_version": version_text(LATEST),
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        }
    ]
}


class Root(Resource):
    """/"""

    async def on_get(self, req: Request, resp: Response) -> None:
        answer(req, resp, _VERSIONS)

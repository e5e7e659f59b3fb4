"""``/``: the versions of the API."""

from roost.placement.http.answers import answer
from roost.placement.http.service import PlacementApi
from roost.placement.wire.microversions import LATEST, PlacementRequest, Response, version_text

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


async def list_versions(service: PlacementApi, req: PlacementRequest, resp: Response) -> None:
    """List the versions of the API."""
    answer(req, resp, _VERSIONS)

"""The operation that serves the files which pages load."""

from typing import Final

from roost.dashboard.addresses import ASSETS
from roost.dashboard.assets import asset_files
from roost.web.errors import NotFound
from roost.web.operation import OPEN, Operation
from roost.web.request import Request, Response

_FOR_EVER = "public, max-age=31536000, immutable"


async def show_asset(service: object, req: Request, resp: Response, name: str) -> None:
    """Serve a file. Its address has the digest of the file, so that browsers keep it for ever."""
    _serve(req, resp, name)


async def show_vendor_asset(service: object, req: Request, resp: Response, name: str) -> None:
    """Serve a file of an npm package."""
    _serve(req, resp, f"vendor/{name}")


def _serve(req: Request, resp: Response, name: str) -> None:
    file = asset_files().get(name)
    if file is None:
        raise NotFound("There is no such file.")
    current = req.get_param("v") == file.digest
    resp.set_header("cache-control", _FOR_EVER if current else "no-cache")
    resp.content_type = file.media_type
    if "gzip" in (req.get_header("accept-encoding") or ""):
        resp.set_header("content-encoding", "gzip")
        resp.data = file.compressed
    else:
        resp.data = file.content


ASSET_OPERATIONS: Final = (
    Operation("GET", f"{ASSETS}{{name}}", OPEN, show_asset, provides=()),
    Operation("GET", f"{ASSETS}vendor/{{name}}", OPEN, show_vendor_asset, provides=()),
)

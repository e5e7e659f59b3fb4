"""From values to answers: JSON, nothing, and the headers that say how fresh it is."""

import time
from datetime import UTC, datetime

import falcon
import msgspec

from roost.placement.http.microversions import Since
from roost.placement.http.request import Request, Response


def answer(
    req: Request, resp: Response, document: object, *, status: int = 200, modified: float | None = None
) -> None:
    """Answer with JSON. ``modified``: seconds since the epoch, None for now."""
    resp.status = status
    resp.content_type = falcon.MEDIA_JSON
    resp.data = msgspec.json.encode(document)
    set_freshness(req, resp, modified)


def answer_empty(resp: Response, status: int = 204) -> None:
    """Answer without a body."""
    resp.status = status
    if status != 204:
        resp.set_header("content-length", "0")


def set_freshness(req: Request, resp: Response, modified: float | None = None) -> None:
    """Say when the answer last changed, and that it must be asked for again (from 1.15)."""
    if req.version >= Since.CACHE_HEADERS:
        resp.last_modified = datetime.fromtimestamp(time.time() if modified is None else modified, UTC)
        resp.cache_control = ("no-cache",)


def locate(req: Request, resp: Response, path: str) -> None:
    """Say where the thing created is: an absolute URL."""
    resp.location = f"{req.prefix}{path}"


def href(req: Request, path: str) -> str:
    """A link to a path of this API, with the prefix that it is mounted under."""
    return f"{req.root_path}{path}"

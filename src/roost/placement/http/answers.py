"""Responses: JSON or no body, links, and the headers for caches."""

import time
from datetime import UTC, datetime

import falcon
import msgspec

from roost.placement.wire.microversions import Since
from roost.placement.wire.request import Request, Response


def answer(
    req: Request, resp: Response, document: object, *, status: int = 200, modified: float | None = None
) -> None:
    """Answer with JSON. ``modified``: the last change, in seconds since the epoch; None for now."""
    answer_text(req, resp, msgspec.json.encode(document), status=status, modified=modified)


def answer_text(
    req: Request, resp: Response, text: bytes, *, status: int = 200, modified: float | None = None
) -> None:
    """Answer with JSON that is already encoded. ``modified``: see `answer`."""
    resp.status = status
    resp.content_type = falcon.MEDIA_JSON
    resp.data = text
    set_freshness(req, resp, modified)


def answer_empty(resp: Response, status: int = 204) -> None:
    """Answer without a body."""
    resp.status = status
    if status != 204:
        resp.set_header("content-length", "0")


def set_freshness(req: Request, resp: Response, modified: float | None = None) -> None:
    """Set Last-Modified and ``Cache-Control: no-cache``, from 1.15. For ``modified`` see `answer`."""
    if req.version >= Since.CACHE_HEADERS:
        resp.last_modified = datetime.fromtimestamp(time.time() if modified is None else modified, UTC)
        resp.cache_control = ("no-cache",)


def locate(req: Request, resp: Response, path: str) -> None:
    """Set Location to the absolute URL of a path of this API."""
    resp.location = f"{req.prefix}{path}"


def href(req: Request, path: str) -> str:
    """A link to a path of this API, with the prefix under which the API is mounted."""
    return f"{req.root_path}{path}"

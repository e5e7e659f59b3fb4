"""Responses: JSON or no body, links, and the headers for caches."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from itertools import islice
from typing import Final, TypeVar

import falcon
import msgspec

from roost.placement.wire.microversions import PlacementRequest, Response, Since

_MEMBERS_AT_ONCE: Final = 2_000
"""Members of an object that are written at once: some 5 ms."""

NAMES: Final = 2
"""Names that are listed for one unit of work."""

T = TypeVar("T")


def answer(
    req: PlacementRequest,
    resp: Response,
    document: object,
    *,
    status: int = 200,
    modified: float | None = None,
) -> None:
    """Answer with JSON. ``modified``: the last change, in seconds since the epoch; None for now."""
    answer_text(req, resp, msgspec.json.encode(document), status=status, modified=modified)


def answer_text(
    req: PlacementRequest,
    resp: Response,
    text: bytes | memoryview,
    *,
    status: int = 200,
    modified: float | None = None,
) -> None:
    """Answer with JSON that is already encoded. ``modified``: see `answer`."""
    resp.status = status
    resp.content_type = falcon.MEDIA_JSON
    resp.data = text  # type: ignore[assignment]  # a text longer than `LONG` is sent in parts
    set_freshness(req, resp, modified)


async def members_in_parts(
    items: Iterable[tuple[str, T]], describe: Callable[[Sequence[tuple[str, T]]], Mapping[str, object]]
) -> bytes:
    """Encode a JSON object of many members in parts, between which other requests run.

    ``describe`` returns the members for some of the items.
    """
    texts: list[bytes] = []
    left = iter(items)
    while some := list(islice(left, _MEMBERS_AT_ONCE)):
        if texts:
            await asyncio.sleep(0)
        texts.append(msgspec.json.encode(describe(some))[1:-1])
    return b"{" + b",".join(texts) + b"}"


def answer_empty(resp: Response, status: int = 204) -> None:
    """Answer without a body."""
    resp.status = status
    if status != 204:
        resp.set_header("content-length", "0")


def set_freshness(req: PlacementRequest, resp: Response, modified: float | None = None) -> None:
    """Set Last-Modified and ``Cache-Control: no-cache``, from 1.15. For ``modified`` see `answer`."""
    if req.version >= Since.CACHE_HEADERS:
        resp.set_header("last-modified", _http_date(int(time.time() if modified is None else modified)))
        resp.set_header("cache-control", "no-cache")


@lru_cache(maxsize=1_000)
def _http_date(seconds: int) -> str:
    """Return a time in the form of HTTP's headers. Most responses of a second have the same."""
    return format_datetime(datetime.fromtimestamp(seconds, UTC), usegmt=True)


def locate(req: PlacementRequest, resp: Response, path: str) -> None:
    """Set Location to the absolute URL of a path of this API."""
    resp.location = f"{req.prefix}{path}"


def href(req: PlacementRequest, path: str) -> str:
    """Return a link to a path of this API, with the prefix under which the API is mounted."""
    return f"{req.root_path}{path}"

"""Refusals that only ``/v1`` has, and from any refusal to an answer in Placement's form.

PlacementError
├── Gone          410  what is asked for was there and is not kept any more
├── TooLong       414  the URL is too long
└── TooMany       429  as many as there may be at once are under way
"""

import logging

import falcon
import msgspec

from roost.ledger import LedgerBusy
from roost.placement.errors import NotAllowed, PlacementError
from roost.placement.http.request import Request, Response
from roost.storage import StorageError

_LOG = logging.getLogger(__name__)


class Gone(PlacementError):
    """A version, or commits, that are not kept any more: begin anew."""

    status = 410
    code = "placement.gone"


class TooLong(PlacementError):
    """The URL is too long."""

    status = 414


class TooMany(PlacementError):
    """As many as there may be at once are under way."""

    status = 429


async def answer_refusal(req: Request, resp: Response, error: PlacementError, _: object) -> None:
    """Answer with a refusal of the service."""
    if isinstance(error, NotAllowed) and error.allowed:
        resp.set_header("allow", ", ".join(error.allowed))
    _answer(req, resp, error.status, str(error), error.code)


async def answer_http_error(req: Request, resp: Response, error: falcon.HTTPError, _: object) -> None:
    """Answer with an error of the HTTP framework, such as an unknown path."""
    _answer(req, resp, error.status_code, error.description or "")


async def answer_failure(req: Request, resp: Response, error: Exception, _: object) -> None:
    """Answer when something broke: 503 if trying again may help, else 500. The log says what it was."""
    if isinstance(error, LedgerBusy | StorageError):
        _LOG.error("request %s: %s", req.request_id, error)
        _answer(req, resp, 503, "The database cannot be reached or is busy; try again.")
        return
    _LOG.error("request %s: %s %s failed", req.request_id, req.method, req.path, exc_info=error)
    _answer(req, resp, 500, f"Internal error; the log has it under {req.request_id}.")


def _answer(req: Request, resp: Response, status: int, text: str, code: str = PlacementError.code) -> None:
    title = falcon.code_to_http_status(status).partition(" ")[2]
    document = {
        "status": status,
        "title": title,
        "detail": text or title,
        "code": code,
        "request_id": req.request_id,
    }
    resp.status = status
    resp.content_type = falcon.MEDIA_JSON
    resp.data = msgspec.json.encode({"errors": [document]})

"""From a refusal to an answer: Placement's error document, or HTML or text for who accepts only those.

The ``detail`` starts with a sentence for the status, which clients know from upstream; ``code`` is there
from 1.23.
"""

import html
from collections.abc import Callable

import falcon
import falcon.asgi
import msgspec
import structlog

from roost.ledger import LedgerBusy
from roost.placement.http.microversions import LATEST, Since, version_text
from roost.placement.http.request import RETRY_SECONDS, Request, Response
from roost.storage import StorageError
from roost.web.errors import HTTPError, NotAcceptable, Unauthorised

_log = structlog.get_logger()

_SENTENCES = {
    400: "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    401: (
        "This server could not verify that you are authorized to access the document you requested. "
        "Either you supplied the wrong credentials (e.g., bad password), or your browser does not "
        "understand how to supply the credentials required."
    ),
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    405: "The method {method} is not allowed for this resource.",
    406: "The resource could not be generated that was acceptable to your browser (content of type {accept}.",
    409: "There was a conflict when trying to complete your request.",
    413: "The body of your request was too large for this server.",
    415: "The request media type {content_type} is not supported by this server.",
}
_FALLBACK = "The server could not complete the request."


ErrorAnswer = Callable[[Request, Response, int, str, str], None]
"""Fills in the answer to a request that was refused or failed: status, text, Placement's error code."""


def add_error_handlers(app: falcon.asgi.App, answer: ErrorAnswer) -> None:  # type: ignore[type-arg]
    """Have an application answer everything that is raised in it by ``answer``."""

    async def refused(req: Request, resp: Response, error: HTTPError, _: object) -> None:
        resp.set_headers(dict(error.headers))
        answer(req, resp, error.status, str(error), error.code)

    async def refused_by_framework(req: Request, resp: Response, error: falcon.HTTPError, _: object) -> None:
        answer(req, resp, error.status_code, error.description or "", HTTPError.code)

    async def failed(req: Request, resp: Response, error: Exception, _: object) -> None:
        if isinstance(error, LedgerBusy | StorageError):
            _log.error("the database did not serve a request", request=req.log_id, error=str(error))
            resp.set_header("retry-after", str(RETRY_SECONDS))
            text = "The database cannot be reached or is busy; try again."
            answer(req, resp, 503, text, HTTPError.code)
            return
        _log.error("request failed", request=req.log_id, method=req.method, path=req.path, exc_info=error)
        text = f"Internal error; the log has it under {req.request_id}."
        answer(req, resp, 500, text, HTTPError.code)

    app.add_error_handler(Exception, failed)
    app.add_error_handler(falcon.HTTPError, refused_by_framework)
    app.add_error_handler(HTTPError, refused)


def answer_error(req: Request, resp: Response, status: int, text: str, code: str) -> None:
    """Answer in Placement's form."""
    resp.status = status
    title = falcon.code_to_http_status(status).partition(" ")[2]
    accept = _accept(req)
    sentence = _SENTENCES.get(status, _FALLBACK).format(
        method=req.method, accept=accept, content_type=req.content_type or "None"
    )
    any_type = accept == falcon.MEDIA_JSON
    best = falcon.MEDIA_JSON if any_type else req.client_prefers((falcon.MEDIA_HTML, falcon.MEDIA_JSON))
    if best == falcon.MEDIA_JSON:
        resp.content_type = falcon.MEDIA_JSON
        resp.data = msgspec.json.encode(_document(req, status, title, sentence, text, code))
    elif best == falcon.MEDIA_HTML:
        resp.content_type = falcon.MEDIA_HTML
        heading = html.escape(f"{status} {title}")
        resp.text = (
            f"<html><head><title>{heading}</title></head><body><h1>{heading}</h1>"
            f"{html.escape(sentence)}<br><br>{html.escape(text)}</body></html>"
        )
    else:
        resp.content_type = falcon.MEDIA_TEXT
        resp.text = f"{status} {title}\n\n{sentence}\n\n{text}\n"


def _document(
    req: Request, status: int, title: str, sentence: str, text: str, code: str
) -> dict[str, object]:
    if status == Unauthorised.status:
        # Upstream's middleware answers before it knows of Placement's own form.
        return {"message": sentence, "code": f"{status} {title}", "title": title}
    document: dict[str, object] = {
        "status": status,
        "title": title,
        "detail": f"{sentence}\n\n {text}  ",
        "request_id": req.request_id,
    }
    if req.version >= Since.ERROR_CODES:
        document["code"] = code
    if status == NotAcceptable.status and req.version_asked is None:
        document["min_version"] = version_text(0)
        document["max_version"] = version_text(LATEST)
    return {"errors": [document]}


def _accept(req: Request) -> str:
    accept = req.get_header("accept") or "*/*"
    return falcon.MEDIA_JSON if accept == "*/*" else accept

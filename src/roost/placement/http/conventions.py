"""The conventions of the Placement API: microversions, and errors in the forms that its clients know.

The ``detail`` of an error starts with a sentence for its status. ``code`` is there from 1.23.

Source: ``placement/microversion.py``, ``placement/fault_wrap.py`` and ``placement/util.py`` of OpenStack
Placement.
"""

import html
import re

import falcon
import msgspec

from roost.placement.wire.microversions import (
    HEADER,
    LATEST,
    SERVICE,
    PlacementRequest,
    Response,
    Since,
    parse_version,
    version_text,
)
from roost.web.conventions import Conventions
from roost.web.errors import BadRequest, HTTPError, NotAcceptable, NotFound, Unauthorised

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_QUALITY = r"[qQ]=(0(\.[0-9]{0,3})?|1(\.0{0,3})?)"
_PARAMETER = rf"{_TOKEN}=({_TOKEN}|\"[^\"]*\")"
_RANGE = re.compile(rf"{_TOKEN}/{_TOKEN}(\s*;\s*((?![qQ]=){_PARAMETER}|{_QUALITY}))*")
"""One part of a proper Accept header by RFC 9110."""

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


class ReportedError(msgspec.Struct):
    """One error of a response. `code` from 1.23; `min_version` and `max_version` where no version fits."""

    status: int
    title: str
    detail: str
    request_id: str
    code: str | msgspec.UnsetType = msgspec.UNSET
    min_version: str | msgspec.UnsetType = msgspec.UNSET
    max_version: str | msgspec.UnsetType = msgspec.UNSET


class ReportedErrors(msgspec.Struct):
    """The body of every response that reports an error, except a 401."""

    errors: list[ReportedError]


class PlacementConventions(Conventions):
    """The conventions of the Placement API."""

    errors = ReportedErrors
    raises = (BadRequest, NotAcceptable)

    def unknown_path(self, req: PlacementRequest) -> HTTPError:  # type: ignore[override]
        # As upstream, in whose API the error has no code of its own.
        return NotFound()

    def receive(self, req: PlacementRequest) -> None:  # type: ignore[override]
        req.version_asked = parse_version(req.get_header(HEADER))
        try:
            length = int(req.get_header("content-length") or 0)
        except ValueError:
            raise BadRequest("content-length header must be an integer") from None
        if length > 0 and not req.content_type:
            raise BadRequest("content-type header required when content-length > 0")

    def accepts(self, req: PlacementRequest, media_types: tuple[str, ...]) -> bool:  # type: ignore[override]
        # A malformed header is ignored: some clients have sent one for decades, such as Java's
        # ``text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2``.
        return super().accepts(req, media_types) or not all(
            not part or _RANGE.fullmatch(part) for part in map(str.strip, req.accept.split(","))
        )

    def finish(self, req: PlacementRequest, resp: Response) -> None:  # type: ignore[override]
        if req.version_asked is not None:
            resp.set_header(HEADER, f"{SERVICE} {version_text(req.version_asked)}")
            resp.append_header("vary", HEADER)

    def refuse(self, req: PlacementRequest, resp: Response, error: HTTPError) -> None:  # type: ignore[override]
        text, title = str(error), falcon.code_to_http_status(error.status).partition(" ")[2]
        accept = req.get_header("accept") or "*/*"
        accept = falcon.MEDIA_JSON if accept == "*/*" else accept
        sentence = _SENTENCES.get(error.status, _FALLBACK).format(
            method=req.method, accept=accept, content_type=req.content_type or "None"
        )
        any_type = accept == falcon.MEDIA_JSON
        best = falcon.MEDIA_JSON if any_type else req.client_prefers((falcon.MEDIA_HTML, falcon.MEDIA_JSON))
        if best == falcon.MEDIA_JSON:
            resp.content_type = falcon.MEDIA_JSON
            resp.data = msgspec.json.encode(_document(req, error, title, sentence))
        elif best == falcon.MEDIA_HTML:
            resp.content_type = falcon.MEDIA_HTML
            heading = html.escape(f"{error.status} {title}")
            resp.text = (
                f"<html><head><title>{heading}</title></head><body><h1>{heading}</h1>"
                f"{html.escape(sentence)}<br><br>{html.escape(text)}</body></html>"
            )
        else:
            resp.content_type = falcon.MEDIA_TEXT
            resp.text = f"{error.status} {title}\n\n{sentence}\n\n{text}\n"


def detail_of(error: HTTPError, sentence: str | None = None) -> str:
    """The detail of an error: the sentence for its status, and its text."""
    return f"{sentence or _SENTENCES.get(error.status, _FALLBACK)}\n\n {error}  "


def _document(req: PlacementRequest, error: HTTPError, title: str, sentence: str) -> object:
    if error.status == Unauthorised.status:
        # As upstream, where the authentication middleware answers in a form of its own.
        return {"message": sentence, "code": f"{error.status} {title}", "title": title}
    described = ReportedError(error.status, title, detail_of(error, sentence), req.request_id)
    if req.version >= Since.ERROR_CODES:
        described.code = error.code
    if error.status == NotAcceptable.status and req.version_asked is None:
        described.min_version = version_text(0)
        described.max_version = version_text(LATEST)
    return ReportedErrors([described])

"""What every request passes before its operation and after it."""

import re

import falcon

from roost.auth import Authenticator
from roost.placement.http.auth import identify
from roost.placement.http.microversions import HEADER, SERVICE, parse_version, version_text
from roost.placement.http.operations import OPERATIONS
from roost.placement.http.request import Request, Response
from roost.web.errors import (
    BadRequest,
    NotAcceptable,
    NotAllowed,
    NotFound,
    Unsupported,
)

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_QUALITY = r"[qQ]=(0(\.[0-9]{0,3})?|1(\.0{0,3})?)"
_PARAMETER = rf"{_TOKEN}=({_TOKEN}|\"[^\"]*\")"
_RANGE = re.compile(rf"{_TOKEN}/{_TOKEN}(\s*;\s*((?![qQ]=){_PARAMETER}|{_QUALITY}))*")
"""One part of a proper Accept header by RFC 9110."""


class Gate:
    """Middleware: who asks, at which version, and whether the operation is there at that version."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def process_request(self, req: Request, resp: Response) -> None:
        """Before the URL is looked up."""
        if req.path not in ("/", ""):
            await identify(self._authenticator, req, resp)
        req.version_asked = parse_version(req.get_header(HEADER))
        if "\x00" in req.path or req.path.startswith("//"):
            # Databases take no NUL; the router would overlook the second slash.
            raise NotFound
        _check_length(req)

    async def process_resource(
        self, req: Request, resp: Response, resource: object, params: dict[str, str]
    ) -> None:
        """After the URL was looked up: the operation by the table."""
        operations = OPERATIONS[req.uri_template or "/"]
        operation = operations.get(req.method)
        if operation is None:
            raise NotAllowed("The method specified is not allowed for this resource.", tuple(operations))
        if req.version < operation.since:
            raise NotFound if operation.hidden_as == 404 else NotAllowed
        if operation.body.at(req.version) is not None:
            media_type = (req.content_type or "None").partition(";")[0].strip()
            if media_type != falcon.MEDIA_JSON:
                raise Unsupported(f"The media type {media_type} is not supported, use {falcon.MEDIA_JSON}")
        if operation.answers_json and not _accepts_json(req):
            raise NotAcceptable(f"Only {falcon.MEDIA_JSON} is provided")

    async def process_response(
        self, req: Request, resp: Response, resource: object, req_succeeded: bool
    ) -> None:
        """After the answer is made, or the refusal."""
        resp.set_header("x-openstack-request-id", req.request_id)
        if req.version_asked is not None:
            resp.set_header(HEADER, f"{SERVICE} {version_text(req.version_asked)}")
            resp.append_header("vary", HEADER)


def _accepts_json(req: Request) -> bool:
    """Whether the client takes JSON. A header that is malformed says nothing: some clients have had one for
    decades, such as Java's ``text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2``."""
    parts = (part.strip() for part in req.accept.split(","))
    return req.client_accepts(falcon.MEDIA_JSON) or not all(
        not each or _RANGE.fullmatch(each) for each in parts
    )


def _check_length(req: Request) -> None:
    """Refuse a body that is not announced properly."""
    try:
        length = int(req.get_header("content-length") or 0)
    except ValueError:
        raise BadRequest("content-length header must be an integer") from None
    if length > 0 and not req.content_type:
        raise BadRequest("content-type header required when content-length > 0")

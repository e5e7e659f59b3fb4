"""Differences between services: checks of a request, headers of a response, the form of errors."""

import falcon
import msgspec

from roost.web.errors import HTTPError, NoOperation, TooLong, kind_of
from roost.web.request import Request, Response

LONGEST_URL = 16 * 1024
"""Characters of path and query string together. A longer URL is refused with 414."""


class Error(msgspec.Struct, forbid_unknown_fields=True):
    """One error of a response. Source: the errors guideline of OpenStack's API working group."""

    status: int
    title: str
    detail: str
    code: str
    request_id: str


class Errors(msgspec.Struct, forbid_unknown_fields=True):
    """The body of every response that reports an error."""

    errors: list[Error]


class Conventions:
    """The conventions of ``/v1``: no microversions; errors are always JSON.

    ``errors`` is the type of the body of errors; ``raises`` are the errors that `receive` raises.

    Args:
        service: the first word of the codes of errors without a code of their own, such as
            ``conductor.not_found``; None: such errors have the code that upstream's API gives them.
    """

    errors: type = Errors
    raises: tuple[type[HTTPError], ...] = (TooLong,)

    def __init__(self, service: str | None = None) -> None:
        self._service = service

    def code_of(self, error: HTTPError) -> str:
        """Return the code of an error, its name for programs."""
        if self._service is None or error.code != HTTPError.code:
            return error.code
        return f"{self._service}.{kind_of(type(error))}"

    def unknown_path(self, req: Request) -> HTTPError:
        """Return the error for a path that no operation has."""
        return NoOperation(f"there is no {req.method} {req.path} here")

    def receive(self, req: Request) -> None:
        """Check a request after authentication and before routing. Raises `HTTPError`."""
        if len(req.path) + len(req.query_string) > LONGEST_URL:
            raise TooLong(f"A URL may have at most {LONGEST_URL} characters.")

    def accepts(self, req: Request, media_types: tuple[str, ...]) -> bool:
        """Return whether the client accepts one of the media types."""
        return any(req.client_accepts(media_type) for media_type in media_types)

    def finish(self, req: Request, resp: Response) -> None:
        """Set the headers of every response. Caches must revalidate unless the handler says otherwise."""
        if resp.get_header("cache-control") is None:
            resp.set_header("cache-control", "no-cache")

    def refuse(self, req: Request, resp: Response, error: HTTPError) -> None:
        """Fill in the response for an error."""
        title = falcon.code_to_http_status(error.status).partition(" ")[2]
        described = Error(error.status, title, str(error) or title, self.code_of(error), req.request_id)
        resp.content_type = falcon.MEDIA_JSON
        resp.data = msgspec.json.encode(Errors([described]))

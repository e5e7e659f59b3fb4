"""The errors that refuse a request, one for each HTTP status.

HTTPError
├── BadRequest         400  the request is malformed
├── Unauthorised       401  there is no valid token
├── Forbidden          403  the policy does not allow the operation
├── NotFound           404  there is no such resource
│   └── NoOperation         the service has no operation at this path
├── NotAllowed         405  the resource does not have the method
├── NotAcceptable      406  the client accepts no media type that the operation provides
├── TooSlow            408  the body did not arrive in time
├── Conflict           409  the state of the resource does not allow the operation
├── Gone               410  the resource is no longer available
├── TooLarge           413  the body is too large
├── TooLong            414  the URL is too long
├── Unsupported        415  the body has a wrong media type
├── Unprocessable      422  the request contradicts an earlier one
├── TooMany            429  too many requests of this kind are under way
├── HeadTooLarge       431  URL and headers are too large
├── Unavailable        503  a service that this one needs does not answer; nothing was done
└── OutcomeUncertain   503  whether the request was carried out is not known

Other rooms derive their own errors from these. The kernel answers each with its status, text and code.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

RETRY_SECONDS = 1
"""Seconds in ``Retry-After`` while a database or Keystone does not answer. A new attempt costs little."""


class HTTPError(Exception):
    """The request is refused. The text names the fault and the value that has it.

    ``code`` names the error for programs. ``headers`` are set on the response.
    """

    status: int = 500
    code: ClassVar[str] = "placement.undefined_code"
    headers: Mapping[str, str] = MappingProxyType({})


class BadRequest(HTTPError):
    """The request is malformed, or names something unknown."""

    status = 400


class Unauthorised(HTTPError):
    """There is no token, or it is not valid."""

    status = 401


class Forbidden(HTTPError):
    """The policy does not allow the operation."""

    status = 403


class NotFound(HTTPError):
    """There is no such resource."""

    status = 404


class NoOperation(NotFound):
    """The service has no operation at the path of the request."""

    code = "roost.no_operation"


class NotAllowed(HTTPError):
    """The resource does not have the method. ``allowed`` are the methods that it has."""

    status = 405

    def __init__(self, text: str = "", allowed: Sequence[str] = ()) -> None:
        super().__init__(text)
        if allowed:
            self.headers = {"allow": ", ".join(allowed)}


class NotAcceptable(HTTPError):
    """The response cannot be given in a media type that the client accepts."""

    status = 406


class TooSlow(HTTPError):
    """The body of the request did not arrive in time."""

    status = 408
    headers = MappingProxyType({"connection": "close"})


class Conflict(HTTPError):
    """The present state does not allow the operation."""

    status = 409


class Gone(HTTPError):
    """The state that the request names is no longer kept: begin anew."""

    status = 410
    code = "placement.gone"


class TooLarge(HTTPError):
    """The body is too large."""

    status = 413


class TooLong(HTTPError):
    """The URL is too long."""

    status = 414


class Unsupported(HTTPError):
    """The body has a media type that the operation does not take."""

    status = 415


class Unprocessable(HTTPError):
    """The request contradicts an earlier one that it refers to."""

    status = 422


class HeadTooLarge(HTTPError):
    """The head of the request, its URL and headers, is too large. The connection is closed."""

    status = 431
    headers = MappingProxyType({"connection": "close"})


class TooMany(HTTPError):
    """Too many requests of this kind are under way."""

    status = 429


class Unavailable(HTTPError):
    """A database or the identity service does not answer; try again. Nothing was done."""

    status = 503
    headers = MappingProxyType({"retry-after": str(RETRY_SECONDS)})


class OutcomeUncertain(HTTPError):
    """The outcome of the request is not known: it may have been carried out, or may be carried out later.

    It has no ``Retry-After``: a request that creates is sent again only with its ``Idempotency-Key``.
    """

    status = 503
    code = "roost.outcome_unknown"

    def __init__(self, cause: str) -> None:
        super().__init__(
            f"{cause} Whether the request was carried out is not known, and it may be carried out later. "
            "Send it again with the same Idempotency-Key if it has one; otherwise look what is there first."
        )


def kind_of(error: type[HTTPError]) -> str:
    """Return the kind of an error of this tree, as it stands in codes: ``bad_request``, ``not_found``."""
    base = next(each for each in error.__mro__ if each.__module__ == __name__)
    name = "Fault" if base is HTTPError else base.__name__
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()

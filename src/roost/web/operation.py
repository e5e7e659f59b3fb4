"""An operation of an HTTP API, as a row of a table."""

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec

from roost.web.errors import BadRequest, HTTPError
from roost.web.idempotency import Creation
from roost.web.policy import Rule
from roost.web.query import QueryReader
from roost.web.request import Request
from roost.web.validation_messages import invalid_body, malformed_body

JSON: Final = "application/json"
LARGEST_BODY = 2**20
"""Bytes of a body at most, unless the operation has another limit. A larger body is refused with 413."""

Handler = Callable[..., Awaitable[object]]
"""``handler(service, req, resp, **path_parameters)``, see `roost.web`."""

_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Open(enum.Enum):
    """The marker of an operation that needs no token."""

    OPEN = "open"


OPEN: Final = Open.OPEN


@dataclass(frozen=True)
class Operation:
    """One operation.

    - ``rule``: the policy rule, or `OPEN` for an operation without token and policy.
    - ``body``: the type of the JSON body, None without one.
    - ``takes``: the media types that a body may have. If it is empty, the media type is not checked.
    - ``largest_body``: bytes of a body at most.
    - ``query``: reads the query string. With None it is not read.
    - ``answer``: the type of the JSON body of the response, for the OpenAPI document.
    - ``status``: the status of success. ``statuses``: further ones, which the handler sets.
    - ``provides``: the media types of the response. The client must accept one. Empty without a body.
    - ``raises``: errors of the handler, for the OpenAPI document.
    - ``uuids``: the parameters of the path that are uuids; capitals in them make no difference.
    - ``creates``: set for an operation that creates something, which takes a client's key; else None.
    """

    method: str
    path: str
    rule: Rule | Open
    handler: Handler
    body: Any = None
    query: QueryReader | None = None
    answer: Any = None
    status: int = 200
    statuses: tuple[int, ...] = ()
    takes: tuple[str, ...] = (JSON,)
    largest_body: int = LARGEST_BODY
    provides: tuple[str, ...] = (JSON,)
    raises: tuple[type[HTTPError], ...] = ()
    uuids: tuple[str, ...] = ("uuid", "run", "group")
    creates: Creation | None = None

    def check_present(self, req: Request) -> None:
        """Check that the operation exists for this request. Raises `NotFound` or `NotAllowed`."""

    def body_type(self, req: Request) -> Any:
        """Return the type of the body for this request, None without a body."""
        return self.body

    def decode(self, raw: bytes, form: Any) -> Any:
        """Decode a body to a value of type ``form``. Raises `BadRequest`."""
        try:
            return _decoder(form).decode(raw)
        except msgspec.ValidationError as error:
            raise BadRequest(invalid_body(error, form, raw)) from error
        except _MALFORMED as error:
            raise BadRequest(malformed_body(raw, error)) from error

    async def precede(self, service: Any, params: dict[str, str]) -> None:
        """Raise the error that has precedence over an error of the body, if there is one."""


@cache
def _decoder(form: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(form)

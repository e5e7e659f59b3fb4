"""From a JSON body to a value of one of the forms in `bodies`."""

from functools import cache
from typing import Any

import msgspec

from roost.placement.errors import BadRequest
from roost.placement.http.bodies import Aggregates
from roost.placement.http.complaints import Schema, complaint

_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What the decoder raises for what is no JSON, or is nested too deep to be ours."""


def decode(raw: bytes, form: Any) -> Any:
    """A body as a value of type ``form``. Raises `BadRequest` that says what is wrong with it."""
    try:
        value = _decoder(form).decode(raw)
    except msgspec.ValidationError as error:
        found = complaint(_schema(form), _plain(raw))
        raise BadRequest(f"JSON does not validate: {found or error}") from error
    except _MALFORMED as error:
        raise BadRequest(f"Malformed JSON: {error}") from error
    if isinstance(value, Aggregates | list):
        # That nothing is twice in a list is the one rule that a type does not express.
        check(value, form)
    return value


def check(value: object, form: Any) -> None:
    """Raise `BadRequest` if a value that was not decoded is none of type ``form``."""
    found = complaint(_schema(form), msgspec.to_builtins(value))
    if found:
        raise BadRequest(f"JSON does not validate: {found}")


def _plain(raw: bytes) -> Any:
    """The body whatever its form: a fault of form may stand before one of syntax."""
    try:
        return msgspec.json.decode(raw)
    except _MALFORMED as error:
        raise BadRequest(f"Malformed JSON: {error}") from error


@cache
def _decoder(form: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(form)


@cache
def _schema(form: Any) -> Schema:
    return msgspec.json.schema(form)

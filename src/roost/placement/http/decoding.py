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
    except msgspec.ValidationError:
        value = _decode_slowly(raw, form)
    except _MALFORMED as error:
        raise BadRequest(f"Malformed JSON: {error}") from error
    if isinstance(value, Aggregates | list):
        # That nothing is twice in a list is the one rule that a type does not express.
        check(value, form)
    return value


def _decode_slowly(raw: bytes, form: Any) -> Any:
    """What the decoder refused once more: in JSON schema, as upstream judges by, 1.0 is an integer too."""
    plain = _plain(raw)
    try:
        return msgspec.convert(_whole(plain), form)
    except msgspec.ValidationError as error:
        found = complaint(_schema(form), plain)
        raise BadRequest(f"JSON does not validate: {found or error}") from error
    except RecursionError as error:
        raise BadRequest(f"Malformed JSON: {error}") from error


def _whole(value: Any) -> Any:
    """The value with an int for each float that is a whole number."""
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


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

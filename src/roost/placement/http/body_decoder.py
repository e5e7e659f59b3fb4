"""Decodes JSON to the types of `bodies`.

msgspec decodes and validates. A value that it refuses is validated again with the JSON schema of the same
type, because clients match the messages of jsonschema.
"""

import math
from functools import cache
from typing import Any

import msgspec

from roost.placement.errors import BadRequest
from roost.placement.http.bodies import Aggregates

LARGEST_EXPLAINED = 2**17
"""Bytes of the largest body whose error has the message of jsonschema.

Finding that message takes microseconds for each value of the body and blocks the event loop. For a larger
body the message is msgspec's.
"""

_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of the decoder for a text that is not JSON, or is nested too deeply."""


def decode(raw: bytes, form: Any) -> Any:
    """Decode a body to a value of type ``form``.

    Raises:
        BadRequest: The body is not JSON, or not of this type.
    """
    try:
        value = _decoder(form).decode(raw)
    except msgspec.ValidationError:
        value = _decode_whole_numbers(raw, form)
    except _MALFORMED as error:
        raise BadRequest(f"Malformed JSON: {error}") from error
    if isinstance(value, Aggregates | list):
        _check_unique(value, form)
    return value


def convert(value: object, form: Any) -> Any:
    """Convert a decoded JSON value to type ``form``. Raises `BadRequest`."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise _refusal(value, form, str(error)) from error


def _decode_whole_numbers(raw: bytes, form: Any) -> Any:
    """Decode a body to a value of type ``form``, where 1.0 is an integer, as in JSON schema."""
    try:
        # A syntax error has precedence over a wrong value, wherever the two are.
        value = _UNTYPED.decode(raw)
    except _MALFORMED as error:
        raise BadRequest(f"Malformed JSON: {error}") from error
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        if len(raw) > LARGEST_EXPLAINED:
            raise BadRequest(f"JSON does not validate: {error}") from error
        raise _refusal(value, form, str(error)) from error
    except RecursionError as error:
        raise BadRequest(f"Malformed JSON: {error}") from error


def _number(text: str) -> float | int:
    """Return a number with a fraction or an exponent, as an int if it is whole."""
    number = float(text)
    if math.isinf(number):
        raise msgspec.DecodeError(f"the number {text[:40]} is out of range")
    return int(number) if number.is_integer() else number


def _check_unique(value: Aggregates | list[str], form: Any) -> None:
    """Check the one rule that a type does not express: no text is in a list twice."""
    texts = value if isinstance(value, list) else value.aggregates
    if len(set(texts)) < len(texts):
        raise _refusal(msgspec.to_builtins(value), form, "an element is there twice")


def _refusal(value: object, form: Any, otherwise: str) -> BadRequest:
    """Return the error for a value of a wrong type. ``otherwise``: its text if the schema finds no error."""
    from roost.placement.wire.json_schema import describe_error, schema_of

    try:
        described = describe_error(schema_of(form), value)
    except RecursionError:
        # A value can be nested too deeply for the validator, but not for the decoder.
        described = None
    return BadRequest(f"JSON does not validate: {described or otherwise}")


_UNTYPED = msgspec.json.Decoder(float_hook=_number)


@cache
def _decoder(form: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(form)

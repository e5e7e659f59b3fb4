"""From JSON to the types of `bodies`.

msgspec decodes and judges. A value that it refuses is judged again, by the JSON schema that is made from the
same type: clients match the words of JSON schema validators.
"""

import math
from functools import cache
from typing import Any

import msgspec

from roost.placement.errors import BadRequest
from roost.placement.http.bodies import Aggregates

LARGEST_EXPLAINED = 2**17
"""Bytes of a body whose error is told in the words of a JSON schema. That takes microseconds for each value
of the body, in which nothing else is served. The error of a larger body is told in msgspec's words."""

_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What the decoder raises for a text that is no JSON, or is nested deeper than any form."""


def decode(raw: bytes, form: Any) -> Any:
    """A body as a value of type ``form``.

    Raises:
        BadRequest: The body is no JSON, or not of this type.
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
    """A value of JSON's types as one of type ``form``. Raises `BadRequest`."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise _refusal(value, form, str(error)) from error


def _decode_whole_numbers(raw: bytes, form: Any) -> Any:
    """A body as a value of type ``form``, where 1.0 is an integer, as it is in JSON schema."""
    try:
        # An error of syntax is told before an error of form, wherever the two are.
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
    """A number with a fraction or an exponent: an int if it is whole."""
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
    """The error for a value that is not of a type. ``otherwise`` is its text if the schema finds nothing."""
    from roost.placement.http.json_schema import describe_error, schema_of

    try:
        described = describe_error(schema_of(form), value)
    except RecursionError:
        # A value may be nested as deep as it can be decoded but not shown.
        described = None
    return BadRequest(f"JSON does not validate: {described or otherwise}")


_UNTYPED = msgspec.json.Decoder(float_hook=_number)


@cache
def _decoder(form: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(form)

"""Validation messages: the fault of a body or a parameter, in terms of what the client sent."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec

from roost.model.wrong_value import field_names, wrong_value

EMPTY = "The body is empty; send JSON."

UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z"
"""The pattern of a uuid with dashes, in small letters or in capitals."""

WORDS = {
    UUID: "a uuid with dashes",
    r"^[^\x00]*\Z": "text without NUL",
    r"^[A-Z0-9_]+\Z": "capital letters, digits and _",
}
"""Words for patterns of many types. Other patterns are described where they are defined."""

_PATTERN = re.compile(
    r"Expected `str` matching regex (?P<pattern>.*?)(?: - at `\$\.?(?P<place>.*)`)?$", re.DOTALL
)
_CHOICE = re.compile(r"Invalid enum value (?P<value>.*?)(?: - at `\$\.?(?P<place>.*)`)?$", re.DOTALL)
_FIELD = re.compile(r"[a-z_]+$")


def malformed_body(raw: bytes, error: Exception) -> str:
    """Return the message for a body that is not JSON."""
    if not raw.strip():
        return EMPTY
    if str(error) == "Input data was truncated":
        return "The body is no JSON: it ends before its value does."
    return f"The body is no JSON: {error}"


def invalid_value(
    error: msgspec.ValidationError, form: Any, document: object = msgspec.UNSET, prefix: str = ""
) -> str:
    """Return the message for a value that is not of the type ``form``.

    The message for a text that does not match its pattern describes the pattern: `name: letters and digits`.
    For a text that is none of a field's choices it lists them: `state: 'activ' is none of 'active', 'lost'`.
    Others are those of `wrong_value`. ``document``: the converted value; ``prefix``: its place in the body.
    """
    inside = f"{prefix}." if prefix else ""
    if found := _PATTERN.match(str(error)):
        words = _worded(form).get(found["pattern"])
        return str(error) if words is None else f"{inside}{found['place'] or 'the value'}: {words}"
    if (found := _CHOICE.match(str(error))) and (field := _FIELD.search(found["place"] or "")):
        choices = _choices(form).get(field[0])
        if choices:
            return f"{inside}{found['place']}: {found['value']} is none of {', '.join(map(repr, choices))}"
    return wrong_value(error, document, root="the body", prefix=prefix, known=partial(field_names, form))


def invalid_body(error: msgspec.ValidationError, form: Any, raw: bytes) -> str:
    """Return the message for a body that is JSON, but not of the type ``form``."""
    try:
        document: object = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The text after the wrong value may be malformed.
        document = msgspec.UNSET
    return invalid_value(error, form, document)


def patterns_of(form: Any) -> Iterator[tuple[str, str | None]]:
    """Yield the patterns of texts in a type, each with the words that describe it or None."""
    schemas, components = msgspec.json.schema_components([form])
    yield from _patterns([*schemas, components])


@cache
def _worded(form: Any) -> Mapping[str, str]:
    # msgspec names a pattern as Python writes it.
    return {repr(pattern): words for pattern, words in patterns_of(form) if words is not None}


@cache
def _choices(form: Any) -> Mapping[str, Sequence[object]]:
    """Return the choices of the fields that have a fixed set of values, by the field's name."""
    schemas, components = msgspec.json.schema_components([form])
    choices: dict[str, Sequence[object]] = {}
    for each in _objects([*schemas, components]):
        for name, schema in each["properties"].items():
            found = [choice for part in (schema, *schema.get("anyOf", ())) for choice in part.get("enum", ())]
            # If two fields have one name, the message cannot tell them apart.
            choices[name] = found if choices.get(name, found) == found else ()
    return choices


def _objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, dict):
        # A field may be named `properties`, and then its object has no type that is a text.
        if schema.get("type") == "object" and "properties" in schema:
            yield schema
        for each in schema.values():
            yield from _objects(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _objects(each)


def _patterns(schema: Any) -> Iterator[tuple[str, str | None]]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"], schema.get("description") or WORDS.get(schema["pattern"])
        for each in schema.values():
            yield from _patterns(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _patterns(each)

"""What is wrong with a value, in the words that clients know from JSON schema validators.

Upstream's clients and tests match phrases such as ``'total' is a required property``. Bodies are judged by
msgspec, whose words are others; so when it has refused one, `complaint` looks for the same fault by the
schema that msgspec derives from the very same type, and words it. Query strings, which are few and flat,
are judged by it directly.
"""

import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

Schema = dict[str, Any]
Fault = tuple[str, str]
"""A keyword of the schema, and how the value fails it."""

_SHOWN = 200
"""Longest text of a value in a complaint."""

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
}

_DASHED = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UNDASHED_TOO = re.compile(r"([0-9a-fA-F]-?){32}")
_PLAIN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FORMATS = {"uuid": _DASHED, "uuid-like": _UNDASHED_TOO}


def is_uuid_like(text: str) -> bool:
    """Whether ``text`` is a UUID, with its dashes or without."""
    return len(text) <= 36 and _UNDASHED_TOO.fullmatch(text) is not None


def plain_uuid(text: str) -> str:
    """A UUID as it is written in the tables: lower case, with dashes. ``text`` must be like one."""
    return text if _PLAIN.fullmatch(text) else str(uuid.UUID(text))


def complaint(schema: Schema, value: object) -> str | None:
    """What is wrong with ``value``, None if nothing is: the fault nearest to the top of the value."""
    waiting: list[tuple[Schema, Any, str, str]] = [(schema, value, "", "")]
    definitions: Schema = schema.get("$defs", {})
    for part, here, schema_path, value_path in waiting:
        part = _resolved(part, here, definitions)
        for keyword, text in _faults(part, here):
            place = f" on instance{value_path}" if value_path else ""
            return f"{text}\n\nFailed validating '{keyword}' in schema{schema_path}{place}"
        waiting.extend(_inside(part, here, schema_path, value_path))
    return None


def _resolved(schema: Schema, value: object, definitions: Schema) -> Schema:
    """A reference followed, and of several forms the one that the value comes nearest to."""
    if "$ref" in schema:
        return _resolved(definitions[schema["$ref"].rpartition("/")[2]], value, definitions)
    if "anyOf" in schema:
        forms = [_resolved(form, value, definitions) for form in schema["anyOf"]]
        nearest = next((form for form in forms if _TYPES[form["type"]](value)), None)
        return nearest or {"type": [form["type"] for form in forms]}
    return schema


def _faults(schema: Schema, value: Any) -> Iterator[Fault]:
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_TYPES[name](value) for name in types):
        yield "type", f"{_shown(value)} is not of type {', '.join(map(repr, types))}"
    elif isinstance(value, str):
        yield from _string_faults(schema, value)
    elif isinstance(value, dict):
        yield from _object_faults(schema, value)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield "minItems", f"{_shown(value)} should be non-empty"
        if schema.get("uniqueItems") and len(set(map(repr, value))) < len(value):
            yield "uniqueItems", f"{_shown(value)} has non-unique elements"
    elif isinstance(value, int | float):
        if "minimum" in schema and value < schema["minimum"]:
            yield "minimum", f"{_shown(value)} is less than the minimum of {schema['minimum']}"
        if "maximum" in schema and value > schema["maximum"]:
            yield "maximum", f"{_shown(value)} is greater than the maximum of {schema['maximum']}"


def _string_faults(schema: Schema, value: str) -> Iterator[Fault]:
    if "format" in schema and not _FORMATS[schema["format"]].fullmatch(value):
        yield "format", f"{_shown(value)} is not a 'uuid'"
    if "enum" in schema and value not in schema["enum"]:
        yield "enum", f"{_shown(value)} is not one of {schema['enum']}"
    if len(value) < schema.get("minLength", 0):
        yield "minLength", f"{_shown(value)} should be non-empty"
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield "maxLength", f"{_shown(value)} is too long"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield "pattern", f"{_shown(value)} does not match {_as_known(schema['pattern'])!r}"


def _object_faults(schema: Schema, value: dict[str, Any]) -> Iterator[Fault]:
    for name in schema.get("required", ()):
        if name not in value:
            yield "required", f"{name!r} is a required property"
    patterns = schema.get("patternProperties", {})
    unknown = sorted(
        name
        for name in value
        if name not in schema.get("properties", {}) and not any(re.search(each, name) for each in patterns)
    )
    if schema.get("additionalProperties") is False and unknown:
        names = ", ".join(_shown(name) for name in unknown)
        if patterns:
            verb = "does" if len(unknown) == 1 else "do"
            expected = ", ".join(map(repr, sorted(patterns)))
            yield "additionalProperties", f"{names} {verb} not match any of the regexes: {expected}"
        else:
            verb = "was" if len(unknown) == 1 else "were"
            yield (
                "additionalProperties",
                (f"Additional properties are not allowed ({names} {verb} unexpected)"),
            )
    naming = schema.get("propertyNames", {}).get("pattern")
    misnamed = [name for name in value if naming is not None and not re.search(naming, name)]
    if misnamed:
        expected = _as_known(naming)
        yield "propertyNames", f"{_shown(misnamed[0])} does not match any of the regexes: {expected!r}"
    if len(value) < schema.get("minProperties", 0):
        yield "minProperties", f"{_shown(value)} should be non-empty"


def _inside(
    schema: Schema, value: Any, schema_path: str, value_path: str
) -> Iterator[tuple[Schema, Any, str, str]]:
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield schema["items"], item, f"{schema_path}['items']", f"{value_path}[{index}]"
    if not isinstance(value, dict):
        return
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for name, item in value.items():
        path = f"{value_path}[{name!r}]"
        if name in properties:
            yield properties[name], item, f"{schema_path}['properties'][{name!r}]", path
        elif isinstance(others, dict):
            yield others, item, f"{schema_path}['additionalProperties']", path


def _as_known(pattern: str) -> str:
    """A pattern as JSON schemas write it: they have no ``\\Z``."""
    return pattern.replace(r"\Z", "$")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

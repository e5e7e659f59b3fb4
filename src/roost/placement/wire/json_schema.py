"""Validation messages for JSON values in the words of jsonschema, which clients of Placement match.

jsonschema takes long to import, and only errors need it: import this module inside the function that raises.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend

Schema = dict[str, Any]

MOST_ERRORS = 100
"""Errors of a value after which validation ends. The message is that of the best match among them."""

LONGEST_START = 400
LONGEST_END = 200
"""Characters left at start and end of a longer message: its start has the value, its end the rule."""

_Keyword = Callable[[Any, Any, Any, Schema], Iterator[ValidationError]]


@cache
def schema_of(form: Any) -> Schema:
    """Return the JSON schema of a type, as Placement writes schemas: without references, names by pattern."""
    [schema], definitions = msgspec.json.schema_components([form], ref_template="{name}")
    readable: Schema = _readable(schema, definitions)
    return readable


def describe_error(schema: Schema, value: object) -> str | None:
    """Return the message for the most relevant error of a value, in one line; None if there is no error.

    Upstream sends one line too, and its command-line client shows only the last line of a detail.
    """
    error = best_match(islice(_Validator(schema).iter_errors(value), MOST_ERRORS))
    if error is None:
        return None
    message = error.message
    if len(message) > LONGEST_START + LONGEST_END:
        message = f"{message[:LONGEST_START]} … {message[-LONGEST_END:]}"
    place = f" on instance{_path(error.absolute_path)}" if error.absolute_path else ""
    keyword = error.absolute_schema_path[-1]
    if keyword in ("pattern", "maxLength") and "format" in error.schema:
        # Here a format is a pattern and a length; upstream's validator checks the format.
        keyword = "format"
    schema_path = _path(list(error.absolute_schema_path)[:-1])
    return f"{message}  Failed validating {keyword!r} in schema{schema_path}{place}"


def _path(parts: Sequence[str | int]) -> str:
    return "".join(f"[{part!r}]" for part in parts)


def _readable(schema: Any, definitions: dict[str, Schema]) -> Any:
    if isinstance(schema, list):
        return [_readable(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _readable(definitions[schema["$ref"]], definitions)
    found = {key: _readable(each, definitions) for key, each in schema.items()}
    if isinstance(found.get("pattern"), str):
        found["pattern"] = _pattern(found["pattern"])
    if "propertyNames" in found:
        names = found.pop("propertyNames")["pattern"]
        found["patternProperties"] = {names: found["additionalProperties"]}
        found["additionalProperties"] = False
    return found


def _pattern(pattern: str) -> str:
    """Return a Python pattern as JSON schemas write it: without ``\\Z``."""
    return pattern.replace(r"\Z", "$")


def _named(keyword: str) -> _Keyword:
    """Return a keyword whose message names the schema's format, if there is one: ``'x' is not a 'uuid'``."""
    check = Draft202012Validator.VALIDATORS[keyword]

    def checked(validator: Any, limit: object, instance: object, schema: Schema) -> Iterator[ValidationError]:
        for error in check(validator, limit, instance, schema):
            if "format" in schema:
                error.message = f"{instance!r} is not a {schema['format']!r}"
            yield error

    return checked


def _unique_items(validator: Any, limit: object, instance: Any, schema: Schema) -> Iterator[ValidationError]:
    """Check ``uniqueItems`` of texts. jsonschema's own check is quadratic for items that cannot be sorted."""
    texts = isinstance(instance, list) and all(isinstance(item, str) for item in instance)
    if texts and len(set(instance)) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


_Validator = extend(
    Draft202012Validator,
    {"pattern": _named("pattern"), "maxLength": _named("maxLength"), "uniqueItems": _unique_items},
)

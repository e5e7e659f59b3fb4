"""Query strings: from text to a struct."""

import math
import re
from typing import Annotated, Any, Final, Protocol
from urllib.parse import parse_qsl

import falcon.asgi
import msgspec

from roost.web.errors import BadRequest
from roost.web.validation_messages import UUID, WORDS, invalid_value

Parameters = dict[str, list[str]]
"""All values of each parameter, in their order."""

DEFAULT_PAGE = 100
"""Entries on a page of a list, if the client names no limit."""

LARGEST_PAGE = 1000
"""Entries on a page of a list at most. A larger limit is refused."""

Uuid = Annotated[str, msgspec.Meta(pattern=UUID)]
"""A parameter that is a uuid; capitals make no difference."""

Moment = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
"""A parameter that is a time in seconds since 1970."""

_UUID: Final = re.compile(UUID)
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_TRUTHS: Final = frozenset(("true", "false", "1", "0"))
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_WRONG = "Invalid query string parameters"


class QueryReader(Protocol):
    """Reads the query string of an operation, and describes it."""

    def read(self, req: Any) -> Any:
        """Read the parameters of a request. Raises `BadRequest`."""

    def describe(self) -> list[dict[str, Any]]:
        """The parameters as OpenAPI has them."""


class Query:
    """Query parameters as the fields of a struct. A repeated or unknown parameter is refused."""

    def __init__(self, form: type[msgspec.Struct]) -> None:
        self.form = form
        self._schemas: dict[str, dict[str, Any]] = {
            name: _without_null(schema) for name, schema in _properties(form).items()
        }

    def read(self, req: falcon.asgi.Request) -> Any:
        """Read the parameters of a request as the struct. Raises `BadRequest`."""
        return self.convert(read_parameters(req))

    def convert(self, found: Parameters) -> Any:
        """Convert parameters to the struct. Raises `BadRequest`."""
        values: dict[str, object] = {}
        for name, texts in found.items():
            if len(texts) > 1:
                raise BadRequest(f"{_WRONG}: '{name}' may be specified only once.")
            values[name] = self._value(name, texts[0])
        try:
            return msgspec.convert(values, self.form, strict=False)
        except msgspec.ValidationError as error:
            raise BadRequest(f"{_WRONG}: {invalid_value(error, self.form, values)}") from None

    @property
    def names(self) -> frozenset[str]:
        """The names of the parameters."""
        return frozenset(self._schemas)

    def describe(self) -> list[dict[str, Any]]:
        """The parameters as OpenAPI has them."""
        described = []
        for name, schema in self._schemas.items():
            schema = dict(schema)
            parameter = {"name": name, "in": "query"}
            if "description" in schema:
                parameter["description"] = schema.pop("description")
            described.append({**parameter, "schema": schema})
        return described

    def _value(self, name: str, text: str) -> object:
        schema = self._schemas.get(name, {})
        match schema.get("type"):
            case "integer":
                # msgspec would take 1.0 and 1e3 for integers, and refuse 01.
                if not _INTEGER.fullmatch(text):
                    raise _refused(name, "a whole number", text)
                return int(text)
            case "number":
                # msgspec would accept inf, and nan, which is neither above nor below a bound.
                if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
                    raise _refused(name, "a number", text)
                return float(text)
            case "boolean":
                if text.lower() not in _TRUTHS:
                    raise _refused(name, "true or false", text)
            case "string" if schema.get("pattern") == UUID:
                if not _UUID.fullmatch(text):
                    raise _refused(name, WORDS[UUID], text)
                return text.lower()
        return text


def _refused(name: str, meant: str, text: str) -> BadRequest:
    return BadRequest(f"{_WRONG}: '{name}' must be {meant}. Got: {text[:40]}")


def read_parameters(req: falcon.asgi.Request) -> Parameters:
    """Read the parameters of a request, unchecked. Raises `BadRequest` for invalid UTF-8 and for a NUL."""
    found: Parameters = {}
    try:
        for name, value in parse_qsl(req.query_string, keep_blank_values=True, errors="strict"):
            if "\x00" in value:
                raise BadRequest(f"{_WRONG}: {name} contains a NUL")
            found.setdefault(name, []).append(value)
    except UnicodeDecodeError as error:
        raise BadRequest(f"{_WRONG}: {error}") from error
    return found


def _properties(form: type[msgspec.Struct]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([form])
    properties: dict[str, Any] = components[form.__name__]["properties"]
    return properties


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter's value: None in the struct means that the parameter is absent."""
    if schema.get("default", 0) is None:
        schema = {name: value for name, value in schema.items() if name != "default"}
    forms = [form for form in schema.get("anyOf", ()) if form != {"type": "null"}]
    if len(forms) == 1:
        schema = {**{name: value for name, value in schema.items() if name != "anyOf"}, **forms[0]}
    return schema

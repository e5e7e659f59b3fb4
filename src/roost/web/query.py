"""Query strings: from text to a struct."""

import re
from typing import Any, Protocol
from urllib.parse import parse_qsl

import falcon.asgi
import msgspec

from roost.web.errors import BadRequest
from roost.web.validation_messages import invalid_value

Parameters = dict[str, list[str]]
"""All values of each parameter, in their order."""

DEFAULT_PAGE = 100
"""Entries on a page of a list, if the client names no limit."""

LARGEST_PAGE = 1000
"""Entries on a page of a list at most. A larger limit is refused."""

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_WRONG = "Invalid query string parameters"


class QueryReader(Protocol):
    """Reads the query string of an operation, and describes it."""

    def read(self, req: Any) -> Any:
        """The parameters of a request. Raises `BadRequest`."""

    def describe(self) -> list[dict[str, Any]]:
        """The parameters as OpenAPI has them."""


class Query:
    """Query parameters as the fields of a struct. Each may be there once; an unknown one is refused."""

    def __init__(self, form: type[msgspec.Struct]) -> None:
        self.form = form
        self._schemas: dict[str, dict[str, Any]] = {
            name: _without_null(schema) for name, schema in _properties(form).items()
        }

    def read(self, req: falcon.asgi.Request) -> Any:
        """The parameters of a request, as the struct. Raises `BadRequest`."""
        return self.convert(read_parameters(req))

    def convert(self, found: Parameters) -> Any:
        """The struct from parameters that were read. Raises `BadRequest`."""
        values: dict[str, object] = {}
        for name, texts in found.items():
            if len(texts) > 1:
                raise BadRequest(f"{_WRONG}: '{name}' may be specified only once.")
            values[name] = self._value(name, texts[0])
        try:
            return msgspec.convert(values, self.form, strict=False)
        except msgspec.ValidationError as error:
            raise BadRequest(f"{_WRONG}: {invalid_value(error, self.form)}") from None

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
        # msgspec would take 1.0 and 1e3 for integers, and refuse 01.
        if self._schemas.get(name, {}).get("type") != "integer":
            return text
        if not _INTEGER.fullmatch(text):
            raise BadRequest(f"{_WRONG}: '{name}' must be a whole number. Got: {text[:40]}")
        return int(text)


def read_parameters(req: falcon.asgi.Request) -> Parameters:
    """The parameters of a request, unchecked. Raises `BadRequest` for invalid UTF-8 and for a NUL."""
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
    """The schema of a parameter's value. In the struct None means that the parameter is absent."""
    if schema.get("default", 0) is None:
        schema = {name: value for name, value in schema.items() if name != "default"}
    forms = [form for form in schema.get("anyOf", ()) if form != {"type": "null"}]
    if len(forms) == 1:
        schema = {**{name: value for name, value in schema.items() if name != "anyOf"}, **forms[0]}
    return schema

"""The schemas of an OpenAPI document, as words and tables."""

import json
from collections.abc import Iterator
from typing import Any

from document_site.docstrings import as_markdown
from document_site.markdown import code, heading, label_of, plain, table

Schema = dict[str, Any]


class SchemaTexts:
    """The texts of the schemas of one service, which link to each other."""

    def __init__(self, service: str) -> None:
        self._service = service

    def label(self, name: str) -> str:
        """Return the label of a named schema."""
        return label_of("schema", self._service, name)

    def section(self, name: str, schema: Schema, level: int) -> str:
        """Return the section of a named schema."""
        parts = [heading(level, code(name), self.label(name))]
        if "description" in schema:
            parts.append(f"{as_markdown(schema['description'])}\n")
        if schema.get("type") == "object" and schema.get("properties"):
            parts.append(self._members(schema))
        else:
            parts.append(f"{self.kind(schema)}{self._bounds_of(schema)}\n")
        return "\n".join(parts)

    def kind(self, schema: Schema) -> str:
        """Return the kind of a schema's values in a few words, such as "list of string"."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return f"[{code(name)}](#{self.label(name)})"
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return " or ".join(dict.fromkeys(map(self.kind, schema[choice])))
        if "enum" in schema:
            return " or ".join(code(_written(value)) for value in schema["enum"])
        if "const" in schema:
            return code(_written(schema["const"]))
        kind = schema.get("type", "any value")
        if kind == "array":
            return self._array(schema)
        if kind == "object":
            return self._object(schema)
        if isinstance(kind, list):
            return " or ".join(kind)
        return str(schema.get("format", kind))

    def text(self, schema: Schema) -> str:
        """Return the description of a schema's values, with their bounds and default."""
        described = plain(" ".join(schema.get("description", "").split()))
        if described and described[-1] not in ".:":
            described += "."
        default = f" By default {code(_written(schema['default']))}." if _says(schema) else ""
        return f"{described}{self._bounds_of(schema)}{default}".strip()

    def _members(self, schema: Schema) -> str:
        required = schema.get("required", ())
        rows = [
            (code(name), self.kind(each) + (", required" if name in required else ""), self.text(each))
            for name, each in schema["properties"].items()
        ]
        width = 3 if any(text for _, _, text in rows) else 2
        return table(("member", "value", "")[:width], [row[:width] for row in rows])

    def _array(self, schema: Schema) -> str:
        if "prefixItems" in schema:
            return f"list of {', '.join(map(self.kind, schema['prefixItems']))}"
        items = schema.get("items")
        return f"list of {self.kind(items)}" if isinstance(items, dict) and items else "list"

    def _object(self, schema: Schema) -> str:
        values = schema.get("additionalProperties")
        if isinstance(values, dict) and values:
            return f"map of {self.kind(values)}"
        return "object"

    def _bounds_of(self, schema: Schema) -> str:
        bounds = "; ".join(dict.fromkeys(_bounds(schema)))
        return f" {bounds[0].upper()}{bounds[1:]}." if bounds else ""


def _says(schema: Schema) -> bool:
    """Return whether a schema has a default that says something."""
    return "default" in schema and schema["default"] not in (None, "", [], {})


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _number(value: float) -> str:
    if abs(value) >= 1e15 or value != int(value):
        return f"{value:g}"
    return f"{int(value):,}"


def _bounds(schema: Schema) -> Iterator[str]:
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " entries"),
        ("minProperties", "maxProperties", " keys"),
    ):
        least, most = schema.get(low), schema.get(high)
        if least is not None and most is not None:
            yield f"{_number(least)} to {_number(most)}{unit}"
        elif least is not None:
            yield f"at least {_number(least)}{unit}"
        elif most is not None:
            yield f"at most {_number(most)}{unit}"
    if "pattern" in schema:
        yield f"matches {code(schema['pattern'])}"
    for choice in ("anyOf", "oneOf"):
        for each in schema.get(choice, ()):
            yield from _bounds(each)
    if isinstance(items := schema.get("items"), dict):
        for bound in _bounds(items):
            yield f"each {bound}"

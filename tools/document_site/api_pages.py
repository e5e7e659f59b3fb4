"""A page for each service with an HTTP API, from its OpenAPI document."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from document_site.api_schemas import SchemaTexts
from document_site.api_services import ApiService, api_services, operation_label
from document_site.docstrings import as_markdown
from document_site.markdown import SitePage, code, heading, plain, table, toctree
from document_site.policy_pages import links_to_rules
from roost.placement.http.versioned import VersionedOperation
from roost.web.operation import OPEN, Operation

FOLDER = "reference/apis"

_INDEX = """\
Each page has all operations of a service, with their parameters, bodies, responses and policy rules. It is
made from the OpenAPI document of the service; that of the Placement API is of its latest microversion.
[The API under /v1](../../api-v1.md) has examples.
"""


def api_pages() -> Iterator[SitePage]:
    """Yield the page of each service with its OpenAPI document, and their index."""
    services = api_services()
    rows = [(f"[{each.title}]({each.name}.md)", each.programs) for each in services]
    contents = toctree((each.title, each.name) for each in services)
    yield SitePage(
        f"{FOLDER}/index.md", "\n".join((heading(1, "HTTP APIs"), _INDEX, table(("", ""), rows), contents))
    )
    for each in services:
        yield SitePage(f"{FOLDER}/{each.name}.json", json.dumps(each.document, indent=1, ensure_ascii=False))
        yield SitePage(f"{FOLDER}/{each.name}.md", ServiceText(each).page())


class ServiceText:
    """The page of one service."""

    def __init__(self, service: ApiService) -> None:
        self._service = service
        self._schemas = SchemaTexts(service.name)
        self._rows = {(each.method, each.path): each for each in service.operations}

    def page(self) -> str:
        """Return the page."""
        service, document = self._service, self._service.document
        described = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]
        info, named = document["info"], document["components"]["schemas"]
        operations = [
            (
                f"[{code(f'{method} {path}')}](#{operation_label(service.name, method, path)})",
                plain(each["summary"]),
            )
            for method, path, each in described
        ]
        return "\n".join(
            (
                heading(1, service.title),
                f"{plain(info['description'])} {service.programs}\n",
                f"Version {info['version']}, as [an OpenAPI document]({service.name}.json).\n",
                table(("operation", ""), operations),
                *(self._operation(method, path, each) for method, path, each in described),
                heading(2, "Types", f"types-{service.name}"),
                *(self._schemas.section(name, schema, 3) for name, schema in sorted(named.items())),
            )
        )

    def _operation(self, method: str, path: str, described: dict[str, Any]) -> str:
        label = operation_label(self._service.name, method, path)
        parts = [heading(2, code(f"{method} {path}"), label), f"{plain(described['summary'])}.\n"]
        if "description" in described:
            parts.append(f"{as_markdown(described['description'])}\n")
        row = self._rows.get((method, path))
        parts.append(f"{_access(row)}\n")
        if described["parameters"]:
            parts.append(self._parameters(described["parameters"]))
        body = described.get("requestBody")
        if body is not None:
            [(media_type, content)] = body["content"].items()
            parts.append(f"Body: {self._schemas.kind(content['schema'])}, as {code(media_type)}.\n")
        parts.append(self._responses(described["responses"]))
        return "\n".join(parts)

    def _parameters(self, parameters: Sequence[dict[str, Any]]) -> str:
        rows = []
        for each in parameters:
            schema = {**each["schema"], "description": each.get("description", "")}
            required = ", required" if each.get("required") else ""
            rows.append(
                (
                    code(each["name"]),
                    each["in"],
                    self._schemas.kind(schema) + required,
                    self._schemas.text(schema),
                )
            )
        return table(("parameter", "in", "value", ""), rows)

    def _responses(self, responses: dict[str, Any]) -> str:
        rows = []
        for status, each in responses.items():
            content = each.get("content", {})
            bodies = [f"{self._schemas.kind(body['schema'])}" for body in content.values()]
            rows.append(
                (status, " or ".join(dict.fromkeys(bodies)), plain(" ".join(each["description"].split())))
            )
        return table(("status", "body", ""), rows)


def _access(operation: Operation | None) -> str:
    """Return the sentence about the policy rule of an operation, and its first microversion."""
    since = getattr(operation, "since", 0) if isinstance(operation, VersionedOperation) else 0
    version = f" Since microversion 1.{since}." if since else ""
    if operation is None or operation.rule is OPEN:
        return f"It needs no token.{version}"
    return f"Policy: {links_to_rules(operation.rule)}.{version}"

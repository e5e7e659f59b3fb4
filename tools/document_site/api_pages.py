"""A page for each service with an HTTP API, from its OpenAPI document."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from document_site.api_schemas import SchemaTexts
from document_site.api_services import ApiService, api_services, operation_label
from document_site.docstrings import as_markdown
from document_site.markdown import SitePage, code, heading, plain, table, toctree
from document_site.policy_pages import links_to_rules
from roost.placement.http.versioned import VersionedOperation
from roost.web.openapi import Document
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
        self._meanings = _usual_meanings(service.document)
        self._refusals = f"refusals-{service.name}"
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
                heading(2, "Usual refusals", self._refusals),
                self._usual_refusals(),
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
        """Return the responses of an operation; of refusals with the usual meaning the status alone."""
        usual = {status for status in responses if self._meanings.get(status) == _meaning(responses[status])}
        rows = [
            (status, self._body_of(each), plain(_meaning(each)))
            for status, each in responses.items()
            if status not in usual
        ]
        refused = f"Refused as [usual](#{self._refusals}): {', '.join(sorted(usual))}.\n" if usual else ""
        return "\n".join((table(("status", "body", ""), rows), refused))

    def _body_of(self, response: dict[str, Any]) -> str:
        bodies = [self._schemas.kind(each["schema"]) for each in response.get("content", {}).values()]
        return " or ".join(dict.fromkeys(bodies))

    def _usual_refusals(self) -> str:
        rows = [(status, plain(text)) for status, text in sorted(self._meanings.items())]
        return table(("status", ""), rows)


def _usual_meanings(document: Document) -> dict[str, str]:
    """Return the most frequent meaning of each status of errors in a document."""
    texts: dict[str, Counter[str]] = {}
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if int(status) >= 400 and "headers" in response:
                    texts.setdefault(status, Counter())[_meaning(response)] += 1
    return {status: counted.most_common(1)[0][0] for status, counted in texts.items()}


def _meaning(response: dict[str, Any]) -> str:
    return " ".join(response["description"].split())


def _access(operation: Operation | None) -> str:
    """Return the sentence about the policy rule of an operation, and its first microversion."""
    since = getattr(operation, "since", 0) if isinstance(operation, VersionedOperation) else 0
    version = f" Since microversion 1.{since}." if since else ""
    if operation is None or operation.rule is OPEN:
        return f"It needs no token.{version}"
    return f"Policy: {links_to_rules(operation.rule)}.{version}"

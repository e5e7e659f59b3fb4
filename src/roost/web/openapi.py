"""The OpenAPI document of operations, made from their rows, types and docstrings."""

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import falcon
import msgspec

from roost.web.conventions import Conventions
from roost.web.errors import (
    BadRequest,
    Forbidden,
    HTTPError,
    NotAcceptable,
    NotFound,
    OutcomeUncertain,
    TooLarge,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from roost.web.idempotency import HEADER, LONGEST_KEY, KeyInWork, KeyReused
from roost.web.operation import JSON, OPEN, Operation

Document = dict[str, Any]

_VERSION: Final = "3.1.0"
_REF: Final = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)\}")
_SCHEMES: Final = {"token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}}
_REQUEST_ID: Final = {"x-openstack-request-id": {"schema": {"type": "string"}}}


class OpenApi(msgspec.Struct):
    """An OpenAPI document."""

    openapi: str
    paths: dict[str, Any]


def describe(
    operations: Sequence[Operation], conventions: Conventions, *, title: str, text: str, version: str = "1"
) -> Document:
    """Return the document of operations. ``text`` describes the API, ``version`` is that of the API."""
    types = [conventions.errors]
    types += [each for row in operations for each in (row.body, row.answer) if each is not None]
    schemas, components = msgspec.json.schema_components(types, schema_hook=_any_value, ref_template=_REF)
    schema_of = dict(zip(map(id, types), schemas, strict=True))
    errors = schema_of[id(conventions.errors)]
    paths: Document = {}
    for operation in operations:
        described = {
            **_texts(operation),
            "parameters": [
                *_path_parameters(operation),
                *_query_parameters(operation),
                *_header_parameters(operation),
            ],
            "responses": {**_successes(operation, schema_of), **_refusals(operation, conventions, errors)},
        }
        if operation.body is not None:
            content = {(operation.takes or (JSON,))[0]: {"schema": schema_of[id(operation.body)]}}
            described["requestBody"] = {"required": True, "content": content}
        if operation.rule is OPEN:
            described["security"] = []
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": _VERSION,
        "info": {"title": title, "version": version, "description": text},
        "security": [{"token": []}],
        "paths": paths,
        "components": {"securitySchemes": _SCHEMES, "schemas": components},
    }


def _any_value(form: type) -> Document:
    """Return the schema of a type for which msgspec has none: any JSON value, for ``object``."""
    if form is object:
        return {"description": "Any JSON value."}
    raise NotImplementedError(f"{form} has no schema")


def _texts(operation: Operation) -> Document:
    first, _, rest = (inspect.getdoc(operation.handler) or "").partition("\n\n")
    name, *others = operation.handler.__name__.split("_")
    texts = {
        "operationId": name + "".join(map(str.capitalize, others)),
        "summary": " ".join(first.split()).removesuffix("."),
    }
    if rest:
        texts["description"] = " ".join(rest.split())
    return texts


def _path_parameters(operation: Operation) -> Iterable[Document]:
    for name in _PARAMETER.findall(operation.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query_parameters(operation: Operation) -> Iterable[Document]:
    return () if operation.query is None else operation.query.describe()


def _header_parameters(operation: Operation) -> Iterable[Document]:
    if operation.creates is not None:
        yield {
            "name": HEADER,
            "in": "header",
            "required": False,
            "description": "A key of the client's for this one request. The request that is sent again with "
            "the key creates nothing. Its answer is the first one, with the header idempotent-replayed.",
            "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
        }


def _successes(operation: Operation, schema_of: dict[int, Document]) -> Document:
    found: Document = {}
    schema = schema_of.get(id(operation.answer))
    for status in (operation.status, *operation.statuses):
        found[str(status)] = described = {"description": falcon.code_to_http_status(status).partition(" ")[2]}
        if schema is not None and status != 204:
            described["content"] = {
                media_type: {"schema": schema if media_type == JSON else {"type": "string"}}
                for media_type in operation.provides
            }
    return found


def _refusals(operation: Operation, conventions: Conventions, errors: Document) -> Document:
    kinds = (*_kernel_errors(operation), *conventions.raises, *operation.raises)
    refused = {kind.status: inspect.getdoc(kind) or "" for kind in kinds}
    if operation.method != "GET" and Unavailable.status in refused:
        refused[Unavailable.status] += f"\n\n{inspect.getdoc(OutcomeUncertain)}"
    return {
        str(status): {
            "description": refused[status],
            "headers": _REQUEST_ID,
            "content": {JSON: {"schema": errors}},
        }
        for status in sorted(refused)
    }


def _kernel_errors(operation: Operation) -> Iterable[type[HTTPError]]:
    """Yield the errors that the kernel raises before it calls the handler."""
    if operation.rule is not OPEN:
        yield from (Unauthorised, Forbidden, Unavailable)
    if operation.query is not None or operation.body is not None or operation.creates is not None:
        yield BadRequest
    if operation.creates is not None:
        yield from (KeyInWork, KeyReused)
    if "{" in operation.path:
        yield NotFound
    if operation.provides:
        yield NotAcceptable
    if operation.body is not None:
        yield TooLarge
        if operation.takes:
            yield Unsupported

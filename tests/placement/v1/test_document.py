"""``/v1/openapi.json`` says what there is: it is held to the operations, and answers are held to it."""

import asyncio
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from roost.conductor import http as conductor_http
from roost.placement.http.query import GROUP_PARAMETERS, PARAMETERS
from roost.placement.v1.document import read_document, with_more
from roost.placement.v1.operations import OPERATIONS
from roost.web.conventions import Conventions
from roost.web.openapi import describe
from support.ledgers import host, opened, run
from support.placement_api import uuid_of
from support.serving import Serving
from support.v1_api import V1Api

DOCUMENT = read_document()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
]
PLACEMENTS = {*PARAMETERS["/allocation_candidates"], *GROUP_PARAMETERS, "groups"}


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    found: Any = DOCUMENT
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return dict(found)


def test_the_document_has_all_operations_and_no_other(v1: V1Api) -> None:
    assert v1.read("/v1/openapi.json", x_auth_token="") == DOCUMENT
    described = {
        path: {method.upper() for method in methods if method != "parameters"}
        for path, methods in DOCUMENT["paths"].items()
    }
    assert described == {path: set(methods) for path, methods in OPERATIONS.items()}
    for path in OPERATIONS:
        assert v1.fetch(path).status_code in (200, 400)


@pytest.mark.parametrize("path", OPERATIONS)
def test_each_operation_has_the_parameters_described(path: str) -> None:
    operation = OPERATIONS[path]["GET"]
    described = {
        each["name"]: each["schema"]
        for each in map(resolved, DOCUMENT["paths"][path]["get"].get("parameters", []))
        if each["in"] == "query"
    }
    assert set(described) == {
        *operation.numbers,
        *operation.texts,
        *(PLACEMENTS if operation.of_candidates else ()),
    }
    for name, number in operation.numbers.items():
        schema = described[name]
        assert (schema["minimum"], schema["maximum"], schema["default"]) == (
            number.least,
            number.most,
            number.usual,
        )


def test_the_whole_system_describes_instances_too() -> None:
    instances = describe(conductor_http.OPERATIONS, Conventions(), title="Instances", text="")
    whole = with_more(DOCUMENT, instances)
    assert set(whole["paths"]) == {*OPERATIONS, "/v1/instances", "/v1/instances/{uuid}"}
    schemathesis.openapi.from_dict(whole).validate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with some hosts, which a document's examples ask for."""
    folder = tmp_path_factory.mktemp("served")

    async def fill() -> None:
        async with opened(folder / "roost.db") as [ledger]:
            for number in range(20):
                await run(ledger, *host(uuid_of(f"h{number}"), VCPU=8, MEMORY_MB=4096, DISK_GB=100))

    asyncio.run(fill())
    served = Serving(f"sqlite:///{folder / 'roost.db'}", folder / "log", workers=2)
    yield served.url
    served.end(signal.SIGTERM)
    log = served.said()
    assert "Traceback" not in log, log


def check(case: schemathesis.Case, server: str) -> None:
    headers = {"X-Auth-Token": "admin"}
    asked = (case.query or {}).get("resources")
    if isinstance(asked, str) and len(asked) % 2:
        # Few texts are resources: without help nearly all that is asked would be malformed.
        case.query["resources"] = "VCPU:2"
    case.call_and_validate(base_url=server, headers=headers, checks=CHECKS)


QUICK = settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@SCHEMA.parametrize()
@QUICK
def test_answers_are_as_described(case: schemathesis.Case, server: str) -> None:
    check(case, server)


@pytest.mark.nightly
@SCHEMA.parametrize()
@settings(QUICK, max_examples=1000)
def test_answers_are_as_described_whatever_is_asked(case: schemathesis.Case, server: str) -> None:
    check(case, server)

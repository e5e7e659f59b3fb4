"""``/v1/openapi.json`` says what there is: it is held to the operations, and answers are held to it."""

import asyncio
import json
import signal
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from roost.conductor import http as conductor_http
from roost.placement.v1.operations import OPERATIONS
from roost.placement.wire.query import GROUP_PARAMETERS, PARAMETERS
from roost.scheduler.api.operations import OPERATIONS as SCHEDULING
from roost.web.conventions import Conventions
from roost.web.openapi import describe
from roost.web.operation import Operation
from support.ledgers import host, opened, run
from support.placement_api import uuid_of
from support.serving import Serving
from support.v1_api import V1Api

DOCUMENT = describe(OPERATIONS, Conventions(), title="Roost", text="/v1")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
]
PLACEMENTS = {*PARAMETERS["/allocation_candidates"], *GROUP_PARAMETERS, "groups"}
BEYOND = {"can_split", "isolated"}
"""Parameters of queries for candidates that Placement does not have."""
OWN = {
    "/v1/allocation_candidates": {"limit": (1, 1000, 100), "cursor": None},
    "/v1/changes": {
        "after": (0, 2**63 - 1, 0),
        "limit": (1, 1000, 100),
        "wait": (0, 60, 0),
        "history": None,
    },
    "/v1/capacity": {"fullest": (0, 1000, 10)},
    "/v1/explain": {"misses": (0, 100, 10)},
}


def test_the_document_has_all_operations_and_no_other(v1: V1Api) -> None:
    served = v1.read("/v1/openapi.json", x_auth_token="")
    assert {**served, "info": DOCUMENT["info"]} == json.loads(json.dumps(DOCUMENT))
    schemathesis.openapi.from_dict(served).validate()
    described = [(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods]
    assert described == [(operation.method, operation.path) for operation in OPERATIONS]
    for method, path in described:
        assert v1.fetch(path, method).status_code in (200, 400, 415)


@pytest.mark.parametrize("path", OWN)
def test_each_operation_has_the_parameters_described(path: str) -> None:
    described = {each["name"]: each["schema"] for each in DOCUMENT["paths"][path]["get"]["parameters"]}
    queries = path not in ("/v1/capacity", "/v1/changes")
    assert set(described) == {*OWN[path], *(PLACEMENTS | BEYOND if queries else ())}
    for name, numbers in OWN[path].items():
        if numbers is not None:
            schema = described[name]
            assert (schema["minimum"], schema["maximum"], schema["default"]) == numbers


def test_what_is_wrong_with_a_number_is_refused_as_described(v1: V1Api) -> None:
    for path, own in OWN.items():
        query = "" if path == "/v1/changes" else "&resources=VCPU:1"
        for name, numbers in own.items():
            for number in () if numbers is None else (numbers[0] - 1, numbers[1] + 1):
                assert v1.fetch(f"{path}?{name}={number}{query}").status_code == 400


def test_the_whole_system_describes_instances_too() -> None:
    operations = (*OPERATIONS, *conductor_http.OPERATIONS, *SCHEDULING)
    whole = describe(operations, Conventions(), title="Roost", text="/v1")
    some = {"/v1/changes", "/v1/instances", "/v1/instances/{uuid}", "/v1/select_destinations"}
    assert some <= set(whole["paths"])
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
each = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")


def check_operation(operation: Operation, server: str, how: settings) -> None:
    """Ask what schemathesis thinks of.

    Its own `parametrize` makes the cases when the test is collected. That took a third of the collection,
    in each process of each run.
    """
    schema = schemathesis.openapi.from_dict(DOCUMENT).include(method=operation.method, path=operation.path)
    [made] = get_all_tests(schema=schema, test_func=check, settings=how, given_kwargs=None)
    _, test = made.ok()
    test(server=server)


@each
def test_answers_are_as_described(operation: Operation, server: str) -> None:
    check_operation(operation, server, QUICK)


@pytest.mark.nightly
@each
def test_answers_are_as_described_whatever_is_asked(operation: Operation, server: str) -> None:
    check_operation(operation, server, settings(QUICK, max_examples=1000))

"""Values of query strings and of paths under ``/v1`` that can only be mistakes are told, with the value."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from roost.conductor import http as conductor
from roost.placement.http import operations as placement
from roost.placement.v1.app import OPERATIONS as V1
from roost.scheduler.api.operations import OPERATIONS as SCHEDULING
from roost.web.errors import BadRequest
from roost.web.operation import Operation
from roost.web.query import Moment, Query, Uuid
from roost.web.validation_messages import UUID

OWN = (*conductor.OPERATIONS, *V1, *SCHEDULING)
ZETA = "6C1B0B52-0000-4000-8000-00000000ABCD"


def parameters(kind: str) -> Iterator[Any]:
    """The parameters of one type of all operations of our own."""
    for operation in OWN:
        query = getattr(operation.query, "_own", operation.query)
        if isinstance(query, Query):
            for each in query.describe():
                if each["schema"].get("type") == kind:
                    yield pytest.param(query, each, id=f"{operation.method} {operation.path} {each['name']}")


@pytest.mark.parametrize(
    "text", ["nan", "-nan", "inf", "-inf", "Infinity", "1e999", "", "1_0", "0x1", "soon"]
)
@pytest.mark.parametrize(("query", "parameter"), list(parameters("number")))
def test_a_number_is_a_finite_one(query: Query, parameter: dict[str, Any], text: str) -> None:
    with pytest.raises(BadRequest, match=f"'{parameter['name']}' must be a number. Got: {text}$"):
        query.convert({parameter["name"]: [text]})


@pytest.mark.parametrize(("query", "parameter"), list(parameters("boolean")))
def test_a_truth_is_told_when_it_is_none(query: Query, parameter: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match=f"'{parameter['name']}' must be true or false. Got: maybe$"):
        query.convert({parameter["name"]: ["maybe"]})


def test_markers_that_no_page_has_are_told() -> None:
    """Positions in lists by name (hosts) may be any name, and those of events refuse what is none."""
    kinds: dict[str, str] = {}
    for operation in OWN:
        if isinstance(operation.query, Query) and "marker" in operation.query.names:
            marker = next(each for each in operation.query.describe() if each["name"] == "marker")["schema"]
            kinds[operation.path] = "uuid" if marker.get("pattern") == UUID else marker["type"]
            if kinds[operation.path] == "uuid":
                with pytest.raises(BadRequest, match=r"'marker' must be a uuid with dashes. Got: zzz$"):
                    operation.query.convert({"marker": ["zzz"]})
    assert kinds == {
        "/v1/instances": "uuid",
        "/v1/aggregates": "uuid",
        "/v1/server-groups": "uuid",
        "/v1/scheduler/map": "string",
        "/v1/scheduler/records": "uuid",
        "/v1/audit": "integer",
        "/v1/audit/repairs": "integer",
        "/v1/hosts": "string",
        "/v1/events": "string",
        "/v1/moves": "string",
        "/v1/maintenances": "string",
        "/v1/maintenances/{uuid}/hosts": "string",
    }


class _Form(msgspec.Struct):
    of: Uuid | None = None
    at: Moment | None = None


def test_values_are_read_as_they_are_meant() -> None:
    assert Query(_Form).convert({"of": [ZETA], "at": ["1.5e3"]}) == _Form(ZETA.lower(), 1500.0)


def test_a_time_in_milliseconds_is_none() -> None:
    with pytest.raises(BadRequest, match=r"at: 1764142885000.0 is too large; the most is 1000000000000"):
        Query(_Form).convert({"at": ["1764142885000"]})


@pytest.mark.parametrize("operation", OWN, ids=lambda each: f"{each.method} {each.path}")
def test_each_uuid_of_a_path_is_taken_in_capitals(operation: Operation) -> None:
    """Names of hosts, nodes and cells are names, also those that look like uuids."""
    parameters = {part[1:-1] for part in operation.path.split("/") if part.startswith("{")}
    assert parameters <= {*operation.uuids, "host", "node", "name"}


def test_paths_of_placement_are_those_of_upstream() -> None:
    assert all(operation.uuids == () for operation in placement.OPERATIONS)

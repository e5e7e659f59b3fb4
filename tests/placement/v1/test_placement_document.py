"""``/v1/placement/openapi.json``: the Placement API as it is at one microversion."""

from typing import Any

import pytest
import schemathesis

from roost.placement.http.operations import OPERATIONS
from support.v1_api import V1Api, fault_of

URL = "/v1/placement/openapi.json"


def document(v1: V1Api, version: int) -> Any:
    return v1.read(f"{URL}?microversion=1.{version}", x_auth_token="")


@pytest.mark.parametrize("version", [0, 10, 13, 28, 39])
def test_the_document_has_the_operations_of_the_version(v1: V1Api, version: int) -> None:
    found = document(v1, version)
    described = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    there = {(each.method, each.path): each for each in OPERATIONS if each.since <= version}
    assert described == set(there)
    assert found["info"]["version"] == f"1.{version}"
    for (method, path), operation in there.items():
        body = found["paths"][path][method.lower()].get("requestBody")
        assert (body is None) == (operation.bodies.at(version) is None), (method, path)
    schemathesis.openapi.from_dict(found).validate()


def test_bodies_and_parameters_are_those_of_the_version(v1: V1Api) -> None:
    def allocation(version: int) -> set[str]:
        found = document(v1, version)
        schema = found["paths"]["/allocations/{consumer}"]["put"]["requestBody"]["content"]
        name = schema["application/json"]["schema"]["$ref"].rpartition("/")[2]
        return set(found["components"]["schemas"][name]["properties"])

    def parameters(version: int) -> set[str]:
        found = document(v1, version)["paths"]["/allocation_candidates"]["get"]["parameters"]
        return {each["name"] for each in found}

    assert allocation(0) == {"allocations"}
    assert allocation(12) == {"allocations", "project_id", "user_id"}
    assert allocation(38) > {"consumer_type", "consumer_generation", "mappings"}
    assert parameters(10) == {"resources"}
    assert parameters(39) > {"resources", "required", "member_of", "same_subtree", "groups"}


def test_the_latest_is_the_default_and_no_other_version_is_there(v1: V1Api) -> None:
    assert v1.read(URL) == document(v1, 39) == v1.read(f"{URL}?microversion=latest")
    assert fault_of(v1.fetch(f"{URL}?microversion=1.40"))[0] == 406
    assert fault_of(v1.fetch(f"{URL}?microversion=x"))[0] == 400
    assert fault_of(v1.fetch(f"{URL}?version=1.1"))[0] == 400

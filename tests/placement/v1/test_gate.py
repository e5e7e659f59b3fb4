"""What holds for every request under ``/v1``: its errors have one form, whatever is sent."""

from pathlib import Path

import pytest

from roost.placement.v1.operations import OPERATIONS
from roost.web.conventions import LONGEST_URL
from roost.web.cors import CorsOptions
from support.placement_api import uuid_of
from support.v1_api import V1Api, fault_of

CANDIDATES = "/v1/allocation_candidates?resources=VCPU:1"
PROTECTED = [CANDIDATES, "/v1/capacity", "/v1/changes", "/v1/explain?resources=VCPU:1"]


@pytest.mark.parametrize("path", PROTECTED)
def test_without_a_token_nothing_is_answered(v1: V1Api, path: str) -> None:
    assert fault_of(v1.fetch(path, x_auth_token=""))[0] == 401


@pytest.mark.parametrize("path", PROTECTED)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x_auth_token": "user"}, 403),
        ({"x_auth_token": "user", "x_roles": "member,reader"}, 403),
        ({"x_auth_token": "user", "x_roles": "service"}, 200),
        ({"x_auth_token": "admin", "openstack_system_scope": "all"}, 403),
    ],
)
def test_all_of_it_is_for_admins_and_services(
    v1: V1Api, path: str, headers: dict[str, str], status: int
) -> None:
    answer = v1.fetch(path, **headers)
    assert answer.status_code == status
    assert status == 200 or fault_of(answer)


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v1/", "/v1/nope", "/v1//changes", "/v1/changes/", "/v1/changes/1", "/v1/%00", "/v1/instances"],
)
def test_an_unknown_path_is_404(v1: V1Api, path: str) -> None:
    assert fault_of(v1.fetch(path))[0] == 404


@pytest.mark.parametrize("path", ["/v1x", "/v", "/v1.0", "//v1/changes", "/V1/changes"])
def test_what_only_looks_like_it_is_left_to_placement(v1: V1Api, path: str) -> None:
    answer = v1.fetch(path)
    assert answer.status_code == 404
    assert answer.json()["errors"][0]["detail"].startswith("The resource could not be found.")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", sorted({operation.path for operation in OPERATIONS}))
def test_another_method_is_405(v1: V1Api, method: str, path: str) -> None:
    allowed = [operation.method for operation in OPERATIONS if operation.path == path]
    if method in allowed:
        return
    answer = v1.fetch(path, method)
    assert (fault_of(answer)[0], answer.headers["allow"]) == (405, ", ".join(allowed))


@pytest.mark.parametrize(
    ("path", "accept", "status"),
    [
        (CANDIDATES, "text/plain", 406),
        (CANDIDATES, "text/event-stream", 406),
        (CANDIDATES, "", 200),
        (CANDIDATES, "application/*;q=0.1, text/html", 200),
        ("/v1/changes", "text/html", 406),
        ("/v1/changes", ";;;=,", 406),
        ("/v1/changes", "*/*", 200),
        ("/v1/openapi.json", "application/json", 200),
    ],
)
def test_an_answer_must_be_acceptable(v1: V1Api, path: str, accept: str, status: int) -> None:
    answer = v1.fetch(path, accept=accept or "*/*")
    assert answer.status_code == status
    assert status == 200 or fault_of(answer)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "resources=VCPU:1&colour=red",
        "resources=VCPU:1&resources=VCPU:1",
        "resources=VCPU:1&limit=1&limit=1",
        "resources=VCPU:1&limit=0",
        "resources=VCPU:1&limit=1001",
        "resources=VCPU:1&limit=-1",
        "resources=VCPU:1&limit=1.0",
        "resources=VCPU:1&limit=NaN",
        "resources=VCPU:1&limit=",
        "resources=VCPU:1&limit=%D9%A3",
        f"resources=VCPU:1&limit={'9' * 5000}",
        "resources=VCPU:1&cursor=a&cursor=a",
        "resources=VCPU:NaN",
        "resources=VCPU:1e9",
        "resources=CUSTOM_NONE:1",
        "resources=plenty:1",
        "resources=VCPU%00:1",
        "resources=VCPU:1&required=%ED%A0%80",
        "resources=VCPU:1&required=%ff",
        "resources=VCPU:1&required=CUSTOM_NONE",
        "resources=VCPU:1&%00=1",
        "resources=VCPU:1&required=HW_NUMA_ROOT,!HW_NUMA_ROOT",
        "resources_1=VCPU:1&resources_2=VCPU:1",
        f"resources=VCPU:1&in_tree={uuid_of('a')}&in_tree={uuid_of('a')}",
        "resources=VCPU:1&after=1",
    ],
)
@pytest.mark.parametrize("path", ["/v1/allocation_candidates", "/v1/explain"])
def test_a_wrong_query_is_400(v1: V1Api, path: str, query: str) -> None:
    if path == "/v1/explain" and "limit" in query:
        query = query.replace("limit", "misses").replace("=0", "=101")
    assert fault_of(v1.fetch(f"{path}?{query}"))[0] == 400


@pytest.mark.parametrize("amount", [2**31, 2**63, 2**64, 10**20 - 1, 10**30])
@pytest.mark.parametrize("path", ["/v1/allocation_candidates", "/v1/explain"])
def test_an_amount_has_a_limit(v1: V1Api, path: str, amount: int) -> None:
    v1.provider("a", VCPU=8)
    assert fault_of(v1.fetch(f"{path}?resources=VCPU:{amount}"))[0] == 400
    assert v1.read(f"{path}?resources=VCPU:{2**31 - 1}").get("allocation_requests", []) == []


@pytest.mark.parametrize(
    "query",
    ["after=-1", "after=x", f"after={2**63}", "limit=0", "wait=61", "wait=NaN", "wait=1&wait=1", "x=1"],
)
def test_a_wrong_query_of_changes_is_400(v1: V1Api, query: str) -> None:
    assert fault_of(v1.fetch(f"/v1/changes?{query}"))[0] == 400


def test_a_url_has_a_limit(v1: V1Api) -> None:
    padding = LONGEST_URL - len(CANDIDATES) - len("&limit=")
    assert fault_of(v1.fetch(f"{CANDIDATES}&limit={'0' * padding}"))[0] == 400
    assert fault_of(v1.fetch(f"{CANDIDATES}&limit={'0' * (padding + 20)}"))[0] == 414


def test_what_breaks_is_an_error_of_the_same_form(v1: V1Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> None:
        raise KeyError("secret")

    monkeypatch.setattr(v1.ledger, "current", fail)
    status, text = fault_of(v1.fetch(CANDIDATES))
    assert (status, "secret" in text) == (500, False)


def test_pages_of_other_origins_may_ask_if_configured(tmp_path: Path, empty_database: Path) -> None:
    api = V1Api(tmp_path, empty_database, cors=CorsOptions(allowed_origin=("http://pages",)))
    answer = api.fetch("/v1/changes", origin="http://pages")
    assert answer.headers["access-control-allow-origin"] == "http://pages"
    api.close()

"""What holds for every request: versions, tokens, media types, headers and the forms of errors."""

import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from roost.ledger import LedgerBusy
from roost.placement.http.app import kernel
from roost.placement.http.operations import OPERATIONS
from roost.placement.options import PlacementOptions
from roost.storage import DatabaseFull, DatabaseUnavailable
from roost.web.app import create_app
from support.placement_api import ADMIN, LATEST, Api, fault

UNKNOWN = "/resource_providers/00000000-0000-0000-0000-000000000000"


def test_versions_are_told_without_a_token(api: Api) -> None:
    answer = api.ask("GET", "/", x_auth_token="")
    assert answer.json["versions"][0]["max_version"] == LATEST
    assert answer.headers["openstack-api-version"] == "placement 1.39"
    assert answer.headers["vary"] == "openstack-api-version"


@pytest.mark.parametrize(
    ("header", "version"),
    [
        ("placement 1.5", "1.5"),
        ("placement latest", "1.39"),
        ("compute 2.90, placement 1.7", "1.7"),
        ("PLACEMENT 1.9", "1.9"),
        ("compute 2.90", "1.0"),
        ("nonsense", "1.0"),
    ],
)
def test_version_is_read_from_its_header(api: Api, header: str, version: str) -> None:
    answer = api.ask("GET", "/resource_providers", openstack_api_version=header)
    assert answer.headers["openstack-api-version"] == f"placement {version}"


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("placement 1.40", 406),
        ("placement 2.0", 406),
        ("placement 0.9", 406),
        ("placement 1", 400),
        ("placement 1.x", 400),
        ("placement 1.2.3", 400),
    ],
)
def test_a_version_that_there_is_not_is_refused(api: Api, header: str, status: int) -> None:
    answer = api.ask("GET", "/resource_providers", openstack_api_version=header)
    assert fault(answer) == (status, "")
    error = answer.json["errors"][0]
    assert ("max_version" in error) == (status == 406)
    assert "openstack-api-version" not in answer.headers


def test_without_a_token_nothing_is_answered(api: Api) -> None:
    sent = api.run(api._conductor.simulate_request("GET", "/resource_providers"))
    assert (sent.status_code, sent.json["title"]) == (401, "Unauthorized")


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
@pytest.mark.parametrize(
    "path",
    [
        "/resource_providers/",
        "/resource_classes/",
        "/traits/",
        "/allocations/",
        "/resource_providers//inventories",
        f"{UNKNOWN}/inventories/",
        f"{UNKNOWN}//inventories",
    ],
)
def test_a_path_with_an_empty_part_is_404(api: Api, method: str, path: str) -> None:
    assert fault(api.ask(method, path, {})) == (404, "placement.undefined_code")
    assert api.ask(method, path, {}, x_auth_token="user").status_code == 404


def test_an_unknown_path_is_404_and_a_trailing_slash_too(api: Api) -> None:
    assert fault(api.ask("GET", "/nope")) == (404, "placement.undefined_code")
    for path in ("/resource_providers/", "//resource_providers", "/resource_providers//x"):
        assert api.ask("GET", path).status_code == 404


@pytest.mark.parametrize("method", ["PATCH", "OPTIONS", "HEAD"])
def test_another_method_is_405_and_says_which_there_are(api: Api, method: str) -> None:
    answer = api.ask(method, "/resource_providers")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST"


def versioned() -> list[tuple[str, str, int, int]]:
    return [
        (
            each.method,
            each.path.format(uuid="x", name="CUSTOM_X", resource_class="X", consumer="x"),
            each.since,
            each.hidden_as.status,
        )
        for each in OPERATIONS
        if each.since
    ]


@pytest.mark.parametrize(("method", "url", "since", "hidden_as"), versioned())
def test_an_operation_is_not_there_before_its_version(
    api: Api, method: str, url: str, since: int, hidden_as: int
) -> None:
    before = api.ask(method, url, version=f"1.{since - 1}")
    assert before.status_code == hidden_as
    assert before.json["errors"][0]["detail"].strip() in (
        "The resource could not be found.",
        "The method DELETE is not allowed for this resource.",
    )
    then = api.ask(method, url, version=f"1.{since}")
    assert "could not be found.\n\n   " not in then.text
    assert then.status_code != 405


def test_error_codes_come_with_1_23(api: Api) -> None:
    assert fault(api.ask("GET", UNKNOWN, version="1.22")) == (404, "")
    assert fault(api.ask("GET", UNKNOWN, version="1.23")) == (404, "placement.undefined_code")


def test_an_error_is_text_or_html_for_who_wants_that(api: Api) -> None:
    as_text = api.ask("DELETE", UNKNOWN, accept="text/plain")
    assert as_text.headers["content-type"].startswith("text/plain")
    assert as_text.text.startswith("404 Not Found\n\nThe resource could not be found.")
    as_html = api.ask("DELETE", "/resource_providers/<b>", accept="text/html")
    assert as_html.headers["content-type"].startswith("text/html")
    assert "&lt;b&gt;" in as_html.text and "<b>" not in as_html.text


@pytest.mark.parametrize(
    ("error", "status"),
    [(LedgerBusy("slow"), 503), (DatabaseUnavailable("gone"), 503), (KeyError("bug"), 500)],
)
def test_what_breaks_is_500_and_what_may_pass_is_503(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    async def fail() -> None:
        raise error

    monkeypatch.setattr(api.ledger, "current", fail)
    answer = api.ask("GET", UNKNOWN)
    assert fault(answer) == (status, "placement.undefined_code")
    assert str(error) not in answer.text


def test_a_database_that_cannot_write_says_why(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> None:
        raise DatabaseFull("database sqlite:////secret/path: disk is full")

    monkeypatch.setattr(api.ledger, "current", fail)
    answer = api.ask("GET", UNKNOWN)
    assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
    assert "The database has no space left; nothing was written." in answer.text
    assert "secret" not in answer.text


def test_an_answer_in_json_must_be_acceptable(api: Api) -> None:
    assert api.ask("GET", "/resource_providers", accept="text/plain").status_code == 406
    assert api.ask("GET", "/resource_providers", accept="application/*").status_code == 200
    assert api.ask("GET", "/resource_providers", accept="application/json;q=0").status_code == 406


@pytest.mark.parametrize(
    "accept",
    [
        "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",  # of Java's own client
        "json",
        "*",
        "text/plain;",
        "text/plain;q=2",
    ],
)
def test_a_malformed_accept_header_says_nothing(api: Api, accept: str) -> None:
    assert api.ask("GET", "/resource_providers", accept=accept).status_code == 200


@pytest.mark.parametrize("accept", ["text/plain; ;" * 5_000, " ," * 30_000, 'a/b;c="' * 5_000, "x" * 60_000])
def test_a_long_accept_header_takes_no_time(api: Api, accept: str) -> None:
    start = time.process_time()
    assert api.ask("GET", "/resource_providers", accept=accept).status_code in (200, 406)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("path", ["/allocations/%00", "//traits"])
def test_a_path_that_cannot_be_is_404_in_the_usual_form(api: Api, path: str) -> None:
    answer = api.ask("GET", path)
    assert (answer.status_code, answer.headers["openstack-api-version"]) == (404, "placement 1.39")


def test_a_body_must_be_announced_as_json(api: Api) -> None:
    body = b'{"name": "a"}'
    assert api.ask("POST", "/resource_providers", body, content_type="text/plain").status_code == 415
    assert api.ask("POST", "/resource_providers", body, content_type="").status_code == 400
    with_charset = api.ask(
        "POST", "/resource_providers", body, content_type="application/json; charset=utf-8"
    )
    assert with_charset.status_code == 200


def test_a_body_has_a_length_and_a_limit(api: Api) -> None:
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=api.app), base_url="http://placement")
    sent = {**ADMIN, "content-length": "x", "content-type": "application/json"}
    answer = api.run(client.post("/resource_providers", headers=sent))
    assert (answer.status_code, "content-length header must be an integer" in answer.text) == (400, True)
    api.run(client.aclose())
    rows = [replace(operation, largest_body=13) for operation in OPERATIONS]
    app = create_app(rows, kernel(api.ledger, PlacementOptions(auth_strategy="noauth2")))
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://placement")
    for body, status in ((b'{"name": "a"}', 201), (b'{"name": "bb"}', 413)):
        sent = {**ADMIN, "content-type": "application/json"}
        assert api.run(client.post("/resource_providers", content=body, headers=sent)).status_code == status
    api.run(client.aclose())


@pytest.mark.parametrize("path", ["/allocations/a%00b", "/resource_providers/%ff", "/traits/%ed%a0%80"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_path_that_is_no_text_names_nothing(api: Api, method: str, path: str) -> None:
    body = {"name": "a"} if method == "PUT" else None
    assert api.ask(method, path, body).status_code in (400, 404)


@pytest.mark.parametrize("opening", [b"[", b'{"name": [', b'{"x": {"x": '])
def test_json_nested_without_end_is_400(api: Api, opening: bytes) -> None:
    assert api.ask("POST", "/resource_providers", opening * 100_000).status_code == 400


def test_cache_headers_come_with_1_15(api: Api) -> None:
    assert "last-modified" not in api.ask("GET", "/resource_providers", version="1.14").headers
    headers = api.ask("GET", "/resource_providers", version="1.15").headers
    assert headers["cache-control"] == "no-cache"
    assert headers["last-modified"].endswith("GMT")


def test_every_answer_has_a_request_id_of_its_own(api: Api) -> None:
    ids = {api.ask("GET", path).headers["x-openstack-request-id"] for path in ("/", "/nope", UNKNOWN)}
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x_auth_token": "user"}, 403),
        ({"x_auth_token": "user", "x_roles": "service"}, 200),
        ({"x_auth_token": "user", "x_roles": "member,reader"}, 403),
        ({"x_auth_token": "admin", "openstack_system_scope": "all"}, 403),
    ],
)
def test_policy_is_for_admins_and_services_of_a_project(
    api: Api, headers: dict[str, str], status: int
) -> None:
    assert api.ask("GET", "/resource_providers", **headers).status_code == status


@pytest.mark.parametrize(
    ("role", "new_defaults", "status"), [("service", True, 400), ("admin", True, 403), ("admin", False, 400)]
)
def test_a_reshape_is_for_services(
    tmp_path: Path, empty_database: Path, role: str, new_defaults: bool, status: int
) -> None:
    api = Api(tmp_path, empty_database, enforce_new_defaults=new_defaults)
    assert api.ask("POST", "/reshaper", {}, x_roles=role).status_code == status
    api.close()


def test_a_reader_sees_the_usages_of_its_own_project_only(api: Api) -> None:
    reader = {"x_auth_token": "user:mine", "x_roles": "reader"}
    assert api.ask("GET", "/usages?project_id=mine", **reader).status_code == 200
    assert api.ask("GET", "/usages?project_id=other", **reader).status_code == 403
    assert api.ask("GET", "/usages?project_id=mine&project_id=other", **reader).status_code == 403

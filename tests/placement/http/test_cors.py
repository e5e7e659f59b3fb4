"""Cross-origin requests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.placement.options import CorsOptions, read_options
from support.placement_api import Api

PAGE = "http://page.example"
ASK = {"access_control_request_method": "PUT", "access_control_request_headers": "X-Auth-Token, Accept"}


@pytest.fixture
def shared(tmp_path: Path, empty_database: Path, request: pytest.FixtureRequest) -> Iterator[Api]:
    """The API, open to one page or to the origins that the test names."""
    origins = getattr(request, "param", (PAGE,))
    defaults = read_options().cors
    options = CorsOptions(origins, True, ("X-Seen",), defaults.allow_methods, defaults.allow_headers, 60)
    api = Api(tmp_path, empty_database, cors=options)
    yield api
    api.close()


def test_without_an_allowed_origin_there_is_no_cors(api: Api) -> None:
    assert api.ask("OPTIONS", "/", origin=PAGE, **ASK).status_code == 405
    assert "access-control-allow-origin" not in api.ask("GET", "/", origin=PAGE).headers


def test_a_known_page_may_ask(shared: Api) -> None:
    answer = shared.ask("OPTIONS", "/resource_providers", x_auth_token="", origin=PAGE, **ASK)
    assert (answer.status_code, answer.text) == (200, "")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-methods"] == "PUT"
    assert answer.headers["access-control-allow-headers"] == "X-Auth-Token,Accept"
    assert answer.headers["access-control-max-age"] == "60"
    read = shared.ask("GET", "/resource_providers", origin=PAGE)
    assert read.headers["access-control-expose-headers"] == "X-Seen"
    assert read.headers["access-control-allow-credentials"] == "true"
    assert read.headers["vary"] == "openstack-api-version, Origin"
    assert "access-control-allow-origin" in shared.ask("GET", "/nope", origin=PAGE).headers


@pytest.mark.parametrize(
    "change",
    [
        {"origin": "http://other.example"},
        {"access_control_request_method": "TRACE"},
        {"access_control_request_headers": "X-Other"},
    ],
)
def test_others_may_not(shared: Api, change: dict[str, str]) -> None:
    answer = shared.ask("OPTIONS", "/", **{"origin": PAGE, **ASK, **change})
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("shared", [("*",)], indirect=True)
def test_any_page_may_ask_but_not_with_credentials(shared: Api) -> None:
    headers = shared.ask("GET", "/", origin=PAGE).headers
    assert headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in headers

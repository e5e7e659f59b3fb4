"""Cross-origin requests."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import webob
from oslo_middleware import CORS

from roost.placement.options import read_options
from roost.web.cors import CorsOptions
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


@pytest.mark.parametrize("shared", [(PAGE, "http://second.example"), ("*",)], indirect=True)
def test_headers_are_those_of_upstreams_middleware(shared: Api, request: pytest.FixtureRequest) -> None:
    origins = request.node.callspec.params["shared"]
    defaults = read_options().cors
    upstream = CORS(
        webob.Response(status=401),
        {
            "allowed_origin": list(origins),
            "expose_headers": ["X-Seen"],
            "allow_methods": list(defaults.allow_methods),
            "allow_headers": list(defaults.allow_headers),
            "max_age": 60,
        },
    )
    questions = itertools.product(
        ("OPTIONS", "GET"),
        (None, PAGE, "http://second.example", "http://other.example"),
        (None, "PUT", "TRACE", "put"),
        (None, "", "x-auth-token , ACCEPT", "X-Other,Accept"),
    )
    for method, origin, wanted, names in questions:
        asked = {
            "origin": origin,
            "access-control-request-method": wanted,
            "access-control-request-headers": names,
        }
        headers = {name: value for name, value in asked.items() if value is not None}
        expected = webob.Request.blank("/", method=method, headers=headers).get_response(upstream)
        answer = shared.ask(method, "/", **{name.replace("-", "_"): value for name, value in headers.items()})
        ours, theirs = (_of_cors(each.headers) for each in (answer, expected))
        if origin is not None and "*" in origins:
            # Browsers refuse credentials with a wildcard.
            theirs.pop("access-control-allow-credentials", None)
        assert ours == theirs, asked
        assert ("Origin" in answer.headers.get("vary", "")) == ("Origin" in expected.headers.get("vary", ""))


def _of_cors(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name.lower(): value for name, value in headers.items() if name.lower().startswith("access-control")
    }

"""Requests through a proxy: links and locations are what upstream's would be."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import webob
from oslo_middleware import HTTPProxyToWSGI

from roost.placement.http.forwarded import as_sent
from support.placement_api import Api

THROUGH = {
    "x_forwarded_proto": "https",
    "x_forwarded_host": "cloud.example",
    "x_forwarded_prefix": "/placement",
}


@pytest.fixture
def proxied(tmp_path: Path, empty_database: Path) -> Iterator[Api]:
    api = Api(tmp_path, empty_database, behind_proxy=True)
    yield api
    api.close()


def created(api: Api, name: str, **headers: str) -> str:
    """The location of a new provider."""
    answer = api.ask("POST", "/resource_providers", {"name": name}, **headers)
    assert answer.status_code == 200, answer.text
    return answer.headers["location"].rpartition("/")[0]


def test_links_are_what_the_client_can_reach(proxied: Api) -> None:
    assert created(proxied, "a", **THROUGH) == "https://cloud.example/placement/resource_providers"
    forwarded = "for=192.0.2.1;proto=https;host=there, for=10.0.0.1;proto=http"
    assert created(proxied, "b", forwarded=forwarded) == "https://there/resource_providers"
    [provider, _] = proxied.get("/resource_providers", **THROUGH)["resource_providers"]
    assert {link["href"].partition("/resource_providers")[0] for link in provider["links"]} == {"/placement"}


def test_headers_are_believed_only_if_configured(api: Api) -> None:
    assert created(api, "a", **THROUGH).startswith("http://falconframework.org")


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("forwarded", "for=192.0.2.1;proto=https;host=there")],
        [("forwarded", "Proto = https ;; x , host=other"), ("x-forwarded-proto", "ftp")],
        [("forwarded", "by=1"), ("forwarded", "proto=https")],
        [("x-forwarded-proto", "https"), ("x-forwarded-for", "10.1.1.1, 10.2.2.2")],
        [("x-forwarded-host", "there:8778"), ("x-forwarded-prefix", "/a/b")],
        [("forwarded", "host=there"), ("x-forwarded-prefix", "/a")],
        [("forwarded", ""), ("x-forwarded-proto", "https")],
    ],
)
def test_a_request_is_what_upstream_makes_of_it(headers: list[tuple[str, str]]) -> None:
    together: dict[str, str] = {}
    for name, value in headers:
        together[name] = f"{together[name]},{value}" if name in together else value
    request = webob.Request.blank("/traits", base_url="http://here/mount", headers=together)
    request.environ["REMOTE_ADDR"] = "127.0.0.1"
    HTTPProxyToWSGI(None, {"enable_proxy_headers_parsing": True}).process_request(request)
    raw = [(b"host", b"here"), *((name.encode(), value.encode()) for name, value in headers)]
    scope: dict[str, Any] = {
        "scheme": "http",
        "headers": raw,
        "client": ("127.0.0.1", 1),
        "root_path": "/mount",
    }
    sent = as_sent(scope)
    assert sent["scheme"] == request.environ["wsgi.url_scheme"]
    assert dict(sent["headers"])[b"host"].decode() == request.environ["HTTP_HOST"].removesuffix(":80")
    assert sent["client"][0] == request.environ["REMOTE_ADDR"]
    assert sent["root_path"] == request.environ["SCRIPT_NAME"]

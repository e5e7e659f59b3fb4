"""Requests through a proxy: links and locations are what upstream's would be."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import webob
from oslo_middleware import HTTPProxyToWSGI

from roost.model.errors import OperatorError
from roost.placement.options import PlacementOptions, proxy_warnings, read_options
from roost.web.forwarded import Proxies
from support.placement_api import Api

THROUGH = {
    "x_forwarded_proto": "https",
    "x_forwarded_host": "cloud.example",
    "x_forwarded_prefix": "/placement",
}


@pytest.fixture
def proxied(tmp_path: Path, empty_database: Path) -> Iterator[Api]:
    api = Api(tmp_path, empty_database, enable_proxy_headers_parsing=True)
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
        [("forwarded", "by=1"), ("forwarded", "proto=https")],
        [("x-forwarded-proto", "https"), ("x-forwarded-for", "10.1.1.1")],
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
    scope |= {"type": "http", "method": "GET", "path": "/traits", "query_string": b""}
    sent = Proxies().restore(scope)
    assert sent["scheme"] == request.environ["wsgi.url_scheme"]
    assert dict(sent["headers"])[b"host"].decode() == request.environ["HTTP_HOST"].removesuffix(":80")
    assert sent["client"][0] == request.environ["REMOTE_ADDR"]
    assert sent["root_path"] == request.environ["SCRIPT_NAME"]


QUOTED = 'for="[2001:db8::1]:4711";proto="https";host="there:8778"'
BELIEVED = "https://there:8778/resource_providers"


@pytest.mark.parametrize(
    "forwarded",
    [QUOTED, 'proto=HTTPS; host="there:8778" ; by=_x, for=10.0.0.1', 'host="there\\:8778";proto=https;;'],
)
def test_quoted_values_are_read_as_the_rfc_says(proxied: Api, forwarded: str) -> None:
    assert created(proxied, "a", forwarded=forwarded) == BELIEVED


MALFORMED = [
    {"forwarded": "proto=https;host=there x"},
    {"forwarded": 'proto=https;host="there'},
    {"forwarded": "proto = https;host=there"},
    {"forwarded": "proto=https;host=there,,"},
    {"forwarded": 'proto=https;host="there/x"'},
    {"forwarded": 'proto=https;host="a@b"'},
    {"forwarded": 'proto=https;host="there\\\t"'},
    {"forwarded": 'proto="https://evil/";host=there'},
    {"forwarded": "proto=https;host=there;for=<script>"},
    {"x_forwarded_proto": "https", "x_forwarded_host": "there<script>"},
    {"x_forwarded_proto": "javascript", "x_forwarded_host": "there"},
    {"x_forwarded_host": "there", "x_forwarded_prefix": "//evil.example"},
    {"x_forwarded_host": "there", "x_forwarded_prefix": "/a b"},
    {"x_forwarded_proto": "https", "x_forwarded_for": "somewhere else"},
    {"x_forwarded_proto": "https", "x_forwarded_host": "there\u00e9"},
]


@pytest.mark.parametrize("headers", MALFORMED)
def test_malformed_headers_are_not_believed_at_all(proxied: Api, headers: dict[str, str]) -> None:
    assert created(proxied, "a", **headers) == "http://falconframework.org/resource_providers"


def arrived(proxies: Proxies, client: str | None, **headers: str) -> tuple[str, str, str | None]:
    """Scheme, host and client of a request that arrives from an address."""
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    peer = None if client is None else (client, 4711)
    scope: dict[str, Any] = {
        "type": "http", "scheme": "http", "method": "GET", "path": "/", "query_string": b"",
        "headers": [(b"host", b"here"), *raw], "client": peer, "root_path": "",
    }  # fmt: skip
    sent = proxies.restore(scope)
    return sent["scheme"], dict(sent["headers"])[b"host"].decode(), sent["client"] and sent["client"][0]


LISTED = Proxies.parse(["192.0.2.7", "10.0.0.0/8", "2001:db8::/32"])
FROM_HERE = ("http", "here")


def test_only_listed_proxies_are_believed() -> None:
    said = {"forwarded": "for=198.51.100.1;proto=https;host=there"}
    for peer in ("192.0.2.7", "10.9.9.9", "2001:db8::7"):
        assert arrived(LISTED, peer, **said) == ("https", "there", "198.51.100.1")
    for other in ("192.0.2.8", "11.0.0.1", "2001:db9::7", "nonsense", None):
        assert arrived(LISTED, other, **said) == (*FROM_HERE, other)
        assert arrived(LISTED, other, x_forwarded_proto="https") == (*FROM_HERE, other)


def test_a_client_cannot_speak_for_a_listed_proxy() -> None:
    """What the client itself sent stands before what the proxies have added."""
    spoofed = "for=6.6.6.6;proto=https;host=evil"
    ours = "for=198.51.100.1;proto=https;host=there"
    assert arrived(LISTED, "10.0.0.1", forwarded=f"{spoofed}, {ours}") == ("https", "there", "198.51.100.1")
    chain = f"{spoofed}, {ours}, for=10.0.0.2;proto=http;host=inner"
    assert arrived(LISTED, "10.0.0.1", forwarded=chain) == ("https", "there", "198.51.100.1")
    assert arrived(LISTED, "10.0.0.1", x_forwarded_host="evil, there") == ("http", "there", "10.0.0.1")


@pytest.mark.parametrize(
    "header", ["proto=http;" * 6_000, "a=b , " * 10_000, 'a="' * 20_000, " ;\t" * 20_000]
)
def test_a_long_header_takes_no_time(header: str) -> None:
    start = time.process_time()
    arrived(Proxies(), "10.0.0.1", forwarded=header)
    assert time.process_time() - start < 5


def test_options_name_proxies(tmp_path: Path) -> None:
    file = tmp_path / "placement.conf"
    file.write_text(
        "[oslo_middleware]\nenable_proxy_headers_parsing = true\ntrusted_proxies = 10.0.0.0/8, ::1\n"
    )
    assert read_options(str(file)).proxies == Proxies.parse(["10.0.0.0/8", "::1"])
    file.write_text("[oslo_middleware]\ntrusted_proxies = 10.0.0.0/8\n")
    assert read_options(str(file)).proxies is None
    file.write_text("[oslo_middleware]\nenable_proxy_headers_parsing = true\n")
    assert read_options(str(file)).proxies == Proxies()
    file.write_text("[oslo_middleware]\nenable_proxy_headers_parsing = true\ntrusted_proxies = here\n")
    with pytest.raises(OperatorError, match="here"):
        read_options(str(file))


@pytest.mark.parametrize(
    ("parsing", "trusted", "warns"), [(False, (), False), (True, (), True), (True, ("10.0.0.0/8",), False)]
)
def test_believing_every_client_is_warned_of(parsing: bool, trusted: tuple[str, ...], warns: bool) -> None:
    warnings = proxy_warnings(PlacementOptions(enable_proxy_headers_parsing=parsing, trusted_proxies=trusted))
    assert [("trusted_proxies" in warning) for warning in warnings] == [True] * warns

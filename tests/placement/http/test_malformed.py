"""Everything malformed, to every operation of a real server: refused in the API's own form, nothing done.

Generated from the table of operations, so that a new operation is tested by being in it.
"""

import contextlib
import http.client
import json
import signal
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roost.placement.http.operations import OPERATIONS
from roost.placement.wire.microversions import LATEST
from support.placement_api import PROJECT, uuid_of
from support.serving import Serving
from support.waiting import patience

A, C = uuid_of("a"), uuid_of("c")
NAMES = {"uuid": A, "resource_class": "VCPU", "name": "CUSTOM_X", "consumer": C}
HEADERS = {"x-auth-token": "admin", "x-roles": "admin,service", "content-type": "application/json"}
BIG = 10 * 2**20

RAW = {
    "nothing": b"",
    "no JSON": b"{",
    "two values": b"{}{}",
    "NUL": b"\x00",
    "bad UTF-8": b'{"name": "\xff\xfe"}',
    "truncated UTF-8": b'{"name": "\xe2\x98"}',
    "UTF-16": '{"name": "a"}'.encode("utf-16"),
    "a lone surrogate": b'{"name": "\\ud800"}',
    "nested": b"[" * 100_000,
    "nested objects": b'{"a":' * 100_000,
    "NaN": b"NaN",
    "a huge number": b"9" * 100_000,
    "a huge exponent": b"1e999999999",
    "10 MiB of blanks": b" " * BIG,
    "a string of 10 MiB": b'"' + b"x" * BIG + b'"',
    "10 MiB of members": b"{" + b'"a":1,' * (BIG // 6) + b'"a":1}',
}
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**31, 2**63, 2**64, 10**400, "", "x", "\x00", "\ud800", "x" * 300,
    [], {}, [None], [[]], {"": None}, {"\x00": 1},
)  # fmt: skip


def whole(url: str, method: str, version: int) -> Any:
    """A body that an operation takes at a version."""
    inventory = {"total": 8, "min_unit": 1, "max_unit": 8, "allocation_ratio": 1.0}
    generation = {"resource_provider_generation": 0}
    write: dict[str, Any] = {"allocations": {A: {"resources": {"VCPU": 1}}}}
    if version < 12:
        write = {"allocations": [{"resource_provider": {"uuid": A}, "resources": {"VCPU": 1}}]}
    write |= PROJECT if version >= 8 else {}
    write |= {"consumer_generation": None} if version >= 28 else {}
    write |= {"mappings": {"": [A]}} if version >= 34 else {}
    write |= {"consumer_type": "INSTANCE"} if version >= 38 else {}
    inventories = {"inventories": {"VCPU": inventory}, **generation}
    wholes: dict[tuple[str, str], Any] = {
        ("POST", "/resource_providers"): {"name": "new", "uuid": C},
        ("PUT", "/resource_providers/{uuid}"): {"name": "a"},
        ("POST", "/resource_providers/{uuid}/inventories"): {"resource_class": "VCPU", **inventory},
        ("PUT", "/resource_providers/{uuid}/inventories"): inventories,
        ("PUT", "/resource_providers/{uuid}/inventories/{resource_class}"): {**inventory, **generation},
        ("PUT", "/resource_providers/{uuid}/traits"): {"traits": ["HW_NUMA_ROOT"], **generation},
        ("PUT", "/resource_providers/{uuid}/aggregates"): (
            [A] if version < 19 else {"aggregates": [A], **generation}
        ),
        ("POST", "/resource_classes"): {"name": "CUSTOM_X"},
        ("PUT", "/resource_classes/{name}"): {"name": "CUSTOM_X"},
        ("PUT", "/allocations/{consumer}"): write,
        ("POST", "/allocations"): {C: write},
        ("POST", "/reshaper"): {"inventories": {A: inventories}, "allocations": {C: write}},
    }
    body = wholes[method, url]
    if version >= 14 and url.startswith("/resource_providers") and "name" in body:
        body["parent_provider_uuid"] = None
    return body


def spoilt(whole: Any) -> Iterator[Any]:
    """A body with something wrong in one place: missing, of another kind, or unknown."""
    yield from VALUES
    if isinstance(whole, dict):
        yield {**whole, "unknown": 1}
        for name, value in whole.items():
            rest = {other: each for other, each in whole.items() if other != name}
            yield rest
            yield from ({**rest, name: wrong} for wrong in spoilt(value))
            yield from ({**rest, wrong: value} for wrong in ("", "\x00", "\ud800", "x" * 5000))
    if isinstance(whole, list):
        yield from ([wrong] for wrong in spoilt(whole[0]))
        yield [*whole, *whole]


class Client:
    """One connection that is kept."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=patience(60))

    def ask(
        self, method: str, path: str, body: bytes | None, version: int = LATEST, **headers: str
    ) -> tuple[int, Any]:
        """Status, and the value of the body if it is JSON."""
        sent = {**HEADERS, "openstack-api-version": f"placement 1.{version}", **headers}
        self._connection.request(method, path, body=body, headers=sent)
        answer = self._connection.getresponse()
        raw = answer.read()
        kind = answer.headers.get("content-type", "").partition(";")[0]
        return answer.status, json.loads(raw) if kind == "application/json" else raw


class Site:
    """A server with one provider, and the number of the newest commit of its database."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "roost.db"
        self._server = Serving(f"sqlite:///{self._path}", folder / "log")
        self.port = int(self._server.url.rpartition(":")[2])
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience(60))
        self.ask("POST", "/resource_providers", json.dumps({"name": "a", "uuid": A}).encode())

    def end(self) -> None:
        self._connection.close()
        self._server.end(signal.SIGKILL)

    def ask(
        self, method: str, path: str, body: bytes | None = None, version: int = LATEST, **headers: str
    ) -> tuple[int, Any]:
        """Status, and the value of the body if it is JSON."""
        sent = {**HEADERS, "openstack-api-version": f"placement 1.{version}", **headers}
        self._connection.request(method, path, body=body, headers=sent)
        answer = self._connection.getresponse()
        raw = answer.read()
        kind = answer.headers.get("content-type", "").partition(";")[0]
        return answer.status, json.loads(raw) if kind == "application/json" else raw

    def head(self) -> int:
        with contextlib.closing(sqlite3.connect(self._path)) as connection:
            [head] = connection.execute("SELECT max(seq) FROM commits").fetchone()
        return int(head)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("malformed"))
    yield site
    site.end()


def assert_refused(answer: tuple[int, Any], *statuses: int) -> None:
    """A refusal in the form that the API has for it."""
    status, document = answer
    assert status in statuses, answer
    [error] = document["errors"]
    assert error["status"] == status and error["title"] and error["detail"] and error["request_id"]


def forms() -> Iterator[tuple[str, str, int]]:
    """Method, URL and version of every form of a body that there is."""
    for operation in OPERATIONS:
        before = None
        for version in range(LATEST + 1):
            form = operation.bodies.at(version)
            if form is not None and form != before:
                yield operation.method, operation.path, version
            before = form


def every_operation() -> Iterator[tuple[str, str]]:
    return ((operation.method, operation.path) for operation in OPERATIONS)


def has_body(method: str, url: str) -> bool:
    [operation] = [each for each in OPERATIONS if (each.method, each.path) == (method, url)]
    return operation.bodies.at(LATEST) is not None


@pytest.mark.parametrize("what", RAW)
def test_what_is_no_body_is_refused_everywhere(site: Site, what: str) -> None:
    head = site.head()
    for method, url, version in forms():
        assert_refused(site.ask(method, url.format(**NAMES), RAW[what], version), 400)
    assert site.head() == head


@pytest.mark.parametrize(("method", "url", "version"), list(forms()))
def test_what_is_wrong_anywhere_in_a_body_is_refused(site: Site, method: str, url: str, version: int) -> None:
    head = site.head()
    done = 0
    for wrong in spoilt(whole(url, method, version)):
        answer = site.ask(method, url.format(**NAMES), json.dumps(wrong).encode(), version)
        if answer[0] < 300:
            done += 1  # not wrong after all, such as a name of "x"
        else:
            assert_refused(answer, 400, 404, 409)
    assert site.head() <= head + done


@pytest.mark.parametrize(
    "name", ["%00", "%FF%FE", "%ED%A0%80", "%C0%80", "..", "%2E%2E", "x" * 10_000, "%", "%zz", "a%2Fb"]
)
def test_what_cannot_be_a_name_names_nothing(site: Site, name: str) -> None:
    head = site.head()
    for method, url in every_operation():
        if "{" not in url:
            continue
        path = url.format(**dict.fromkeys(NAMES, name))
        body = b"{}" if has_body(method, url) else None
        status, document = site.ask(method, path, body)
        if url == "/allocations/{consumer}" and method == "GET" and status == 200:
            assert document == {"allocations": {}}
        else:
            assert_refused((status, document), 400, 404)
    assert site.head() == head


@pytest.mark.parametrize(
    "query",
    [
        "%00", "a=%00", "%FF=%FF", "a=%FF", "=", "&&&", "a", "a=b", "%", "%zz=%zz", "a[]=b",
        "resources=%00", "resources=VCPU:%FF", f"resources=VCPU:{'9' * 5000}", "resources=:1",
        "resources=VCPU:NaN", "in_tree=%00", "same_subtree=%00",
        "&".join(f"resources{number}=VCPU:1" for number in range(500)),
        "limit=%00", "limit=NaN", "name=%00", "name=%ED%A0%80", "member_of=%00", "required=%00", "uuid=%00",
        "project_id=%00", "user_id=%00", f"project_id={'x' * 300}",
        f"required={','.join(['HW_NUMA_ROOT'] * 3000)}",
    ],
)  # fmt: skip
def test_what_is_no_query_breaks_nothing(site: Site, query: str) -> None:
    for method, url in every_operation():
        if method == "GET":
            status, document = site.ask(method, f"{url.format(**NAMES)}?{query}")
            if status >= 300:
                assert_refused((status, document), 400, 404)


@pytest.mark.parametrize(
    "headers",
    [
        {"openstack-api-version": "placement \xff"},
        {"openstack-api-version": "placement 1.99999999999999999999999999"},
        {"openstack-api-version": "placement " + "1" * 5000 + ".0"},
        {"openstack-api-version": "placement 1.-1"},
        {"openstack-api-version": "placement 1.\u0661".encode().decode("latin-1")},
        {"content-type": "\xff"},
        {"content-type": "application/json; charset=\xff"},
        {"accept": "\xff"},
        {"accept": "application/json;q=nan"},
        {"accept": ";;;"},
        {"x-auth-token": ""},
        {"x-roles": "\xff"},
    ],
    ids=str,
)
def test_odd_headers_break_nothing(site: Site, headers: dict[str, str]) -> None:
    for method, url in every_operation():
        body = b"{}" if has_body(method, url) else None
        status, _ = site.ask(method, url.format(**NAMES), body, **headers)
        assert status < 500


@pytest.mark.parametrize("length", [5_000, 50_000, 500_000])
def test_a_url_may_be_too_long(site: Site, length: int) -> None:
    """Up to 64 KiB the API judges it; a longer one is refused by the server before it is read."""
    for method, url in every_operation():
        for path in (f"{url.format(**NAMES)}/{'x' * length}", f"{url.format(**NAMES)}?a={'x' * length}"):
            with socket.create_connection(("127.0.0.1", site.port), timeout=patience(60)) as connection:
                request = f"{method} {path} HTTP/1.1\r\nhost: x\r\nx-auth-token: admin\r\n"
                with contextlib.suppress(ConnectionError):
                    connection.sendall(f"{request}connection: close\r\n\r\n".encode())
                answer = http.client.HTTPResponse(connection)
                answer.begin()
                assert answer.status < 500
                if answer.status >= 400 and length < 60_000:
                    assert json.loads(answer.read())["errors"]

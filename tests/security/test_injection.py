"""Text from clients is data in every database: no value of a parameter, path or body is read as SQL."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.placement.http.app import document_at
from roost.placement.http.operations import OPERATIONS
from roost.placement.v1 import operations as v1
from roost.placement.wire.microversions import LATEST
from support.databases import KINDS, Place, Servers
from support.placement_api import Api, allocation, uuid_of
from support.serving import Serving, roost

ATTACKS = (
    "'",
    '"',
    "' OR '1'='1",
    '" OR "1"="1',
    "1 OR 1=1",
    "') OR ('1'='1",
    "x' UNION SELECT name FROM resource_providers --",
    "'; DROP TABLE commits; --",
    "'; DELETE FROM commits; --",
    "1; SELECT pg_sleep(60) --",
    "1 AND SLEEP(60)",
    "' || (SELECT token FROM commits LIMIT 1) || '",
    "\\' OR 1=1 --",
    "%",
    "_",
    "%' OR 1=1 --",
    "{{7*7}}${7*7}%(uuid)s:uuid",
    "a' /* */ OR/**/1=1#",
    "\u02bc OR 1=1",
    "9" * 400,
    "-" + "9" * 400,
    "1e400",
    "0x1F",
)
A, C = uuid_of("a"), uuid_of("c")
NAMES = {"uuid": A, "resource_class": "VCPU", "name": "CUSTOM_X", "consumer": C}


def parameters() -> Iterator[tuple[str, str]]:
    """Path and name of each query parameter that the documents of the two APIs have."""
    placement: Any = json.loads(bytes(document_at(LATEST)))
    for path, methods in placement["paths"].items():
        for described in methods.get("get", {}).get("parameters", ()):
            if described["in"] == "query":
                yield path, described["name"]
    for operation in v1.OPERATIONS:
        if operation.query is not None:
            for name in (
                "resources",
                "required",
                "member_of",
                "in_tree",
                "limit",
                "cursor",
                "after",
                "history",
            ):
                yield operation.path, name


PARAMETERS = sorted(set(parameters()))


def test_the_documents_name_the_parameters() -> None:
    assert {name for path, name in PARAMETERS if path == "/resource_providers"} >= {"name", "uuid", "in_tree"}
    assert len(PARAMETERS) > 25


@pytest.fixture(scope="module", params=[kind for kind in KINDS if kind != "galera"])
def server(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serving]:
    """A server with one provider, on each kind of database in turn."""
    folder = tmp_path_factory.mktemp("injection")
    with servers.place(request.param, folder) as place:
        yield from serving(place, folder)


def serving(place: Place, folder: Path) -> Iterator[Serving]:
    upgraded = roost("db", "upgrade", "--database", place.url)
    assert upgraded.returncode == 0, upgraded.stderr
    server = Serving(place.url, folder / "log")
    try:
        server.ask("POST", "/resource_providers", {"name": "a", "uuid": A})
        server.ask("POST", f"/resource_providers/{A}/inventories", {"resource_class": "VCPU", "total": 8})
        server.ask("PUT", f"/allocations/{C}", allocation({A: {"VCPU": 1}}))
        yield server
        verified = roost("db", "verify", "--database", place.url)
        assert verified.returncode == 0, verified.stdout + verified.stderr
    finally:
        server.end(signal.SIGKILL)


def everything(server: Serving) -> tuple[str, ...]:
    """The state that clients see, and the number of the newest commit."""
    texts = [
        server.ask("GET", path).text
        for path in ("/resource_providers", f"/allocations/{C}", f"/resource_providers/{A}/inventories")
    ]
    return (*texts, server.ask("GET", "/v1/changes?after=0&limit=1").json()["head"])


def holds_nothing(document: Any) -> bool:
    """Whether a response lists neither the provider nor the consumer."""
    text = json.dumps(document)
    return A not in text and C not in text


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_query_parameter_is_no_sql(server: Serving, attack: str) -> None:
    before = everything(server)
    for path, name in PARAMETERS:
        query = f"{quote(name)}={quote(attack)}"
        if "allocation_candidates" in path and name != "resources":
            query += "&resources=VCPU:1"
        answer = server.ask("GET", f"{path.format(**NAMES)}?{query}")
        told = (path, name, answer.status_code, answer.text[:300])
        assert answer.status_code in (200, 400, 404, 410), told
        if answer.status_code == 200 and path == "/resource_providers":
            assert holds_nothing(answer.json()), told
    assert everything(server) == before


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_name_in_a_path_is_no_sql(server: Serving, attack: str) -> None:
    before = everything(server)
    for operation in OPERATIONS:
        if "{" not in operation.path:
            continue
        path = operation.path.format(**dict.fromkeys(NAMES, quote(attack, safe="")))
        answer = server.ask(operation.method, path, {} if operation.method in ("PUT", "POST") else None)
        # Only GET of the allocations of an unknown consumer is a success, and it lists nothing.
        assert answer.status_code in (400, 404) or answer.json() == {"allocations": {}}, answer.text
    assert everything(server) == before


def test_names_with_sql_are_stored_and_found_as_they_are(server: Serving) -> None:
    """A name that holds SQL is found by exactly itself, and is what the response shows."""
    names = [attack for attack in ATTACKS if len(attack) <= 200]
    for number, name in enumerate(names):
        made = server.ask("POST", "/resource_providers", {"name": name, "uuid": uuid_of(f"n{number}")})
        assert made.status_code == 200, made.text
    for name in names:
        found = server.ask("GET", f"/resource_providers?name={quote(name)}").json()["resource_providers"]
        assert [each["name"] for each in found] == [name]
    for number, _ in enumerate(names):
        assert server.ask("DELETE", f"/resource_providers/{uuid_of(f'n{number}')}").status_code == 204


FRAGMENTS = st.lists(
    st.sampled_from(
        ["'", '"', "\\", "%", "_", ";", "--", "/*", "*/", "(", ")", " OR ", "1=1", ":a", "%(a)s", "$1"]
    )
    | st.characters(codec="utf-8", exclude_characters="\x00"),
    min_size=1,
    max_size=40,
).map("".join)


@settings(deadline=None)
@given(name=FRAGMENTS, other=FRAGMENTS)
def test_any_text_is_data(api_module: Api, name: str, other: str) -> None:
    """A provider is renamed to any text. Queries by name find it by that text and by no other."""
    answer = api_module.ask("PUT", f"/resource_providers/{A}", {"name": name})
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 400:
        return
    found = api_module.get(f"/resource_providers?name={quote(name)}")["resource_providers"]
    assert [each["name"] for each in found] == [name]
    others = api_module.ask("GET", f"/resource_providers?name={quote(other)}")
    if other != name and others.status_code == 200:
        assert others.json == {"resource_providers": []}


@pytest.fixture(scope="module")
def api_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("data")
    roost("db", "upgrade", "--database", f"sqlite:///{folder / 'roost.db'}")
    api = Api(folder)
    api.provider("a", VCPU=8)
    yield api
    api.close()

"""Upstream's own declarative tests of the Placement API, read from its wheel and run against Roost.

One test for each of the 79 files. Nothing else of upstream is used: the data of a file's fixtures is made
over HTTP (see `worlds`), and every request goes to Roost in this process.
"""

import asyncio
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from gabbi import handlers, suitemaker

from conformance.worlds import SETTINGS, WORLDS, identifiers
from roost.ledger import SCHEMA, Ledger
from roost.placement.http.app import create_app
from roost.placement.options import read_options
from roost.storage import Database
from support.databases import Servers
from support.worlds import World
from support.wsgi import AsWsgi

_SPEC = find_spec("placement")
assert _SPEC is not None and _SPEC.origin is not None
FILES = sorted((Path(_SPEC.origin).parent / "tests" / "functional" / "gabbits").glob("*.yaml"))
TESTS = 1316
"""In all files of openstack-placement 16.0.0."""

RULES = {
    "": ("allocation_candidates:list", "reshaper:reshape", "usages"),
    "allocations": ("delete", "list", "manage", "update"),
    "resource_classes": ("create", "delete", "list", "show", "update"),
    "resource_providers": ("create", "delete", "list", "show", "update", "usages"),
    "resource_providers:aggregates": ("list", "update"),
    "resource_providers:allocations": ("list",),
    "resource_providers:inventories": ("create", "delete", "list", "show", "update"),
    "resource_providers:traits": ("delete", "list", "update"),
    "traits": ("delete", "list", "show", "update"),
}
"""Of the policy: what there is -> what may be done with it."""


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


@contextmanager
def roost(url: str) -> Iterator[AsWsgi]:
    """Roost on an empty database, configured by the environment."""
    with asyncio.Runner() as runner:
        database = Database(url)
        ledger = runner.run(Ledger.open(database))
        yield AsWsgi(create_app(ledger, read_options()), runner.run)
        runner.run(ledger.close())
        runner.run(database.close())


def failures(app: AsWsgi, file: Path) -> list[str]:
    """What fails of a file's tests, which build on each other."""
    suite = suitemaker.test_suite_from_dict(
        loader=unittest.TestLoader(),
        test_base_name=file.stem,
        suite_dict=read(file),
        test_directory=str(file.parent),
        host="localhost",
        port=80,
        fixture_module=None,
        intercept=lambda: app,
        handlers=[handler() for handler in handlers.RESPONSE_HANDLERS],
    )
    result = unittest.TestResult()
    for test in suite:
        test.run(result)
    assert result.testsRun == suite.countTestCases() and not result.skipped
    return [f"{test}\n{text}" for test, text in result.failures + result.errors]


def test_there_are_as_many_as_upstream_has() -> None:
    assert (len(FILES), sum(len(read(file)["tests"]) for file in FILES)) == (79, TESTS)


def check(url: str, file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a file's tests on an empty database, configured as its fixture says."""
    [fixture] = read(file)["fixtures"]
    rules = [f"{noun}:{verb}".lstrip(":") for noun, verbs in RULES.items() for verb in verbs]
    (folder / "policy.yaml").write_text("".join(f'"placement:{rule}": "@"\n' for rule in rules))
    settings = {
        "OS_API__AUTH_STRATEGY": "noauth2",
        "OS_OSLO_POLICY__ENFORCE_NEW_DEFAULTS": "false",
        **SETTINGS.get(fixture, {}),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value.replace("policy.yaml", str(folder / "policy.yaml")))
    with roost(url) as app:
        world = World(app, monkeypatch.setenv)
        identifiers(world)
        WORLDS[fixture](world)
        failed = failures(app, file)
    assert not failed, "\n\n".join(failed)


each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


@each_file
def test_file(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_database: Path) -> None:
    path = tmp_path / "roost.db"
    path.write_bytes(empty_database.read_bytes())
    check(f"sqlite:///{path}", file, tmp_path, monkeypatch)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
@each_file
def test_file_on_other_databases(
    file: Path, kind: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with servers.place(kind, tmp_path) as place:
        database = Database(place.url)
        SCHEMA.upgrade(database)
        asyncio.run(database.close())
        check(place.url, file, tmp_path, monkeypatch)

"""OpenStack's Placement and Roost, each on a database, with the same interface."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import falcon.testing

from roost.ledger import Ledger
from roost.placement.http.app import create_app
from roost.placement.options import PlacementOptions
from roost.storage import Database

LATEST = "1.39"


class Answer(NamedTuple):
    status: int
    body: Any


class Service(Protocol):
    def ask(self, method: str, path: str, body: Any = None, version: str = LATEST) -> Answer: ...


class Upstream:
    """OpenStack Placement on a database, which is created if it does not exist. A context manager."""

    def __init__(self, url: str) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", Path(__file__).with_name("upstream_process.py")],
            env={
                **os.environ,
                "OS_PLACEMENT_DATABASE__CONNECTION": _spelled_for_upstream(url),
                "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "true",
                "OS_API__AUTH_STRATEGY": "noauth2",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        if self._read() != "ready":
            raise AssertionError("OpenStack Placement does not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        self._log.close()

    def ask(self, method: str, path: str, body: Any = None, version: str = LATEST) -> Answer:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([method, path, body, version]) + "\n")
        self._process.stdin.flush()
        found = self._read()
        return Answer(found["status"], found["body"])

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise AssertionError(f"OpenStack Placement has ended: {self._log.read()[-3000:]}")
        return json.loads(line)


def _spelled_for_upstream(url: str) -> str:
    """Return a URL with the driver and the character set that upstream needs."""
    url = url.replace("+psycopg:", "+psycopg2:")
    return f"{url}?charset=utf8mb4" if url.startswith("mysql") else url


class Ours:
    """Roost's Placement API on a database. A context manager."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._database = Database(url)
        self._ledger = self._runner.run(Ledger.open(self._database))
        options = PlacementOptions(auth_strategy="noauth2", enforce_new_defaults=False)
        self._conductor = falcon.testing.ASGIConductor(create_app(self._ledger, options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._ledger.close())
        self._runner.run(self._database.close())
        self._runner.close()

    def ask(self, method: str, path: str, body: Any = None, version: str = LATEST) -> Answer:
        headers = {"x-auth-token": "admin", "openstack-api-version": f"placement {version}"}
        raw = None if body is None else json.dumps(body).encode()
        if raw is not None:
            headers["content-type"] = "application/json"
        path, _, query = path.partition("?")
        found = self._runner.run(
            self._conductor.simulate_request(method, path, query_string=query, body=raw, headers=headers)
        )
        return Answer(found.status_code, found.json if found.text else None)

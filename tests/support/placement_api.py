"""The Placement API without a socket, for synchronous tests."""

import asyncio
import json
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import falcon.testing

from roost.ledger import Command, Ledger
from roost.placement.http.app import create_app
from roost.placement.options import PlacementOptions
from roost.placement.service import PlacementService
from roost.storage import Database

T = TypeVar("T")

LATEST = "1.39"
ADMIN = {"x-auth-token": "admin"}
PROJECT = {"project_id": "project", "user_id": "user"}


class Api:
    """A ledger on a SQLite file in ``folder``, and the Placement API on it.

    ``empty`` is a prepared database file that is copied, which is faster than to prepare one.
    """

    def __init__(self, folder: Path, empty: Path | None = None, **options: Any) -> None:
        self.path = folder / "roost.db"
        if empty is not None:
            shutil.copy(empty, self.path)
        self._runner = asyncio.Runner()
        self.database = Database(f"sqlite:///{self.path}")
        self.ledger = self.run(Ledger.open(self.database))
        chosen = {"auth_strategy": "noauth2", "enforce_new_defaults": False, **options}
        self.app = create_app(self.ledger, PlacementOptions(**chosen))
        self.service = PlacementService(self.ledger)
        self._conductor = falcon.testing.ASGIConductor(self.app)

    def close(self) -> None:
        self.run(self.ledger.close())
        self.run(self.database.close())
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop of the ledger."""
        return self._runner.run(work)

    def execute(self, command: Command[T]) -> T:
        return self.run(self.ledger.execute(command))

    def ask(
        self, method: str, path: str, body: Any = None, *, version: str = LATEST, **headers: str
    ) -> falcon.testing.Result:
        """Send a request. ``body`` is sent as JSON, bytes as they are. Names of headers have _ for -."""
        sent = {**ADMIN, "openstack-api-version": f"placement {version}"}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        if raw is not None:
            sent["content-type"] = "application/json"
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        path, _, query = path.partition("?")
        return self.run(
            self._conductor.simulate_request(method, path, query_string=query, body=raw, headers=sent)
        )

    def get(self, path: str, *, version: str = LATEST, **headers: str) -> Any:
        """Return the JSON of a GET that must succeed."""
        return _succeeded(self.ask("GET", path, version=version, **headers)).json

    def put(self, path: str, body: Any = None, *, version: str = LATEST) -> falcon.testing.Result:
        return _succeeded(self.ask("PUT", path, body, version=version))

    def post(self, path: str, body: Any = None, *, version: str = LATEST) -> falcon.testing.Result:
        return _succeeded(self.ask("POST", path, body, version=version))

    def delete(self, path: str, *, version: str = LATEST) -> falcon.testing.Result:
        return _succeeded(self.ask("DELETE", path, version=version))

    def provider(self, name: str, parent: str | None = None, **inventory: int) -> str:
        """Create a provider with inventory, whose uuid is `uuid_of` its name."""
        uuid = uuid_of(name)
        body = {"uuid": uuid, "name": name}
        if parent is not None:
            body["parent_provider_uuid"] = uuid_of(parent)
        self.post("/resource_providers", body)
        for resource_class, total in inventory.items():
            self.post(
                f"/resource_providers/{uuid}/inventories", {"resource_class": resource_class, "total": total}
            )
        return uuid

    def generation(self, provider: str) -> int:
        found: int = self.get(f"/resource_providers/{provider}")["generation"]
        return found

    def claim(self, consumer: str, provider: str, **amounts: int) -> None:
        """Write allocations of a new consumer of type INSTANCE."""
        self.put(f"/allocations/{consumer}", allocation({provider: amounts}))


def allocation(held: dict[str, dict[str, int]], **more: Any) -> dict[str, Any]:
    """Return the body of PUT /allocations/{consumer} for a new consumer."""
    return {
        "allocations": {provider: {"resources": amounts} for provider, amounts in held.items()},
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
        **PROJECT,
        **more,
    }


def uuid_of(name: str) -> str:
    """Return a uuid that is made of a name of at most six ASCII characters."""
    return f"00000000-0000-0000-0000-{name.encode().hex():0>12}"


def fault(answer: falcon.testing.Result) -> tuple[int, str]:
    """Return the status and the error code of a refusal; the code is "" if there is none."""
    error = answer.json["errors"][0]
    assert error["status"] == answer.status_code
    return answer.status_code, error.get("code", "")


def _succeeded(answer: falcon.testing.Result) -> falcon.testing.Result:
    assert answer.status_code < 300, answer.text
    return answer

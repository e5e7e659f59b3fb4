"""Creates providers and allocations over HTTP from a table.

Uuids are published as environment variables, which declarative tests read.
"""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from wsgiref.types import WSGIApplication

from support.wsgi import call

Publish = Callable[[str, str], None]

WITHOUT_AGGREGATE_GENERATIONS = "1.18"
WITHOUT_CONSUMER_TYPES = "1.28"


@dataclass(frozen=True)
class Made:
    """A provider that is to be created.

    ``inventory``: class -> total, or the whole record; max_unit is the total unless it is said.
    ``aggregates``: variables that hold them. ``used``: what one consumer holds. ``variable``: where the
    uuid is published, by default the name in capitals and ``_UUID``.
    """

    name: str
    parent: str | None = None
    inventory: Mapping[str, int | dict[str, Any]] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    used: Mapping[str, int] = field(default_factory=dict)
    variable: str | None = None


class World:
    """Fills a service. ``variables`` are the published ones."""

    def __init__(self, app: WSGIApplication, publish: Publish) -> None:
        self._app = app
        self._publish = publish
        self.variables: dict[str, str] = {}
        self._uuids: dict[str, str] = {}
        self._known = {
            "resource_classes": {
                each["name"] for each in self.ask("GET", "/resource_classes")["resource_classes"]
            },
            "traits": set(self.ask("GET", "/traits")["traits"]),
        }

    def name(self, variable: str, value: str | None = None) -> str:
        """Publish a value, by default a new uuid, and return it."""
        value = value or str(uuid.uuid4())
        self.variables[variable] = value
        self._publish(variable, value)
        return value

    def ask(self, method: str, url: str, body: object = None, version: str = "1.39") -> Any:
        """Return the JSON of a request that must succeed."""
        headers = {"x-auth-token": "admin", "openstack-api-version": f"placement {version}"}
        headers |= {"content-type": "application/json"} if body is not None else {}
        raw = json.dumps(body).encode() if body is not None else b""
        answer = call(self._app, method, url, raw, headers)
        assert answer.status < 300, f"{method} {url}: {answer.status} {answer.body.decode()}"
        return answer.json

    def make(self, *providers: Made) -> None:
        """Create providers; parents come before children."""
        for each in providers:
            made = self.provider(each.name, parent=each.parent and self._uuids[each.parent])
            self.name(each.variable or f"{each.name.upper()}_UUID", made)
            if each.aggregates:
                aggregates = [self.variables[name] for name in each.aggregates]
                url = f"/resource_providers/{made}/aggregates"
                self.ask("PUT", url, aggregates, WITHOUT_AGGREGATE_GENERATIONS)
            self.inventory(made, **each.inventory)
            self.traits(made, *each.traits)
            if each.used:
                self.allocate(made, "numafx-user", "numafx-project", **each.used)

    def provider(self, name: str, uuid: str | None = None, parent: str | None = None) -> str:
        """Create a provider; return its uuid."""
        body = {"name": name, "parent_provider_uuid": parent, **({"uuid": uuid} if uuid else {})}
        made: str = self.ask("POST", "/resource_providers", body)["uuid"]
        self._uuids[name] = made
        return made

    def inventory(self, provider: str, **inventory: int | dict[str, Any]) -> None:
        """Write inventories with one request, and so one generation, for each class."""
        for name, record in inventory.items():
            self.define("resource_classes", name)
            record = {"total": record} if isinstance(record, int) else record
            body = {"resource_class": name, "max_unit": record["total"], **record}
            self.ask("POST", f"/resource_providers/{provider}/inventories", body)

    def traits(self, provider: str, *traits: str) -> None:
        for name in traits:
            self.define("traits", name)
        if traits:
            generation = self.ask("GET", f"/resource_providers/{provider}")["generation"]
            body = {"traits": traits, "resource_provider_generation": generation}
            self.ask("PUT", f"/resource_providers/{provider}/traits", body)

    def allocate(self, provider: str, user: str, project: str, **amounts: int) -> str:
        """Create a consumer without a type; return its uuid."""
        consumer = str(uuid.uuid4())
        body = {
            "allocations": {provider: {"resources": amounts}},
            "user_id": user,
            "project_id": project,
            "consumer_generation": None,
        }
        self.ask("PUT", f"/allocations/{consumer}", body, WITHOUT_CONSUMER_TYPES)
        return consumer

    def define(self, kind: str, name: str) -> None:
        """Create a custom class or trait unless it exists."""
        if name not in self._known[kind]:
            self.ask("PUT", f"/{kind}/{name}")
            self._known[kind].add(name)

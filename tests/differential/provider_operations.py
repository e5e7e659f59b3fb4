"""Random operations on providers, and on resource classes and traits."""

from collections.abc import Callable
from typing import Any

from differential.choices import (
    AGGREGATES,
    CLASSES,
    CUSTOM_CLASSES,
    CUSTOM_TRAITS,
    PROVIDERS,
    SHARES,
    TRAITS,
    Choices,
    url_of,
)
from differential.operations import Operation


class ProviderOperations(Choices):
    """Makes operations on providers, inventories, traits, aggregates, and on resource classes and traits."""

    def create_provider(self, version: int) -> Operation:
        uuid = self._one(*PROVIDERS)
        body: dict[str, Any] = {"name": f"p{PROVIDERS.index(uuid)}", "uuid": uuid}
        if self._chance(0.05):
            body["name"] = self._one("p1", "", "x" * 200, "x" * 201, "snowman \u2603", 7)
        if self._chance(0.03):
            body["uuid"] = self._one(uuid.upper(), uuid.replace("-", ""), "no-uuid", None)
        if version >= 14 and self._chance(0.7):
            body["parent_provider_uuid"] = self._one(None, self._provider(), self._provider())
        return Operation("POST", "/resource_providers", version, body)

    def update_provider(self, version: int) -> Operation:
        uuid = self._provider()
        body: dict[str, Any] = {"name": f"p{self._one(*range(9))}" if self._chance(0.2) else f"new {uuid}"}
        if version >= 14 and self._chance(0.7):
            body["parent_provider_uuid"] = self._one(None, self._provider(), self._provider())
        return Operation("PUT", f"/resource_providers/{uuid}", version, body)

    def delete_provider(self, version: int) -> Operation:
        return Operation("DELETE", f"/resource_providers/{self._provider()}", version)

    def get_provider(self, version: int) -> Operation:
        part = self._one("", "/inventories", "/usages", "/aggregates", "/traits", "/allocations")
        return Operation("GET", f"/resource_providers/{self._provider()}{part}", version)

    def list_providers(self, version: int) -> Operation:
        filters: list[tuple[str, str]] = []
        makers: dict[str, Callable[[], str]] = {
            "name": lambda: self._one("p1", "p2", "", "none"),
            "uuid": self._provider,
            "member_of": lambda: self._member_of(version),
            "resources": self._resources,
            "in_tree": self._provider,
            "required": lambda: self._required(version),
        }
        since = {"name": 0, "uuid": 0, "member_of": 3, "resources": 4, "in_tree": 14, "required": 18}
        for name in self._some(list(makers), 0, 3):
            if since[name] <= version or self._chance(0.05):
                filters.append((name, makers[name]()))
                if name in ("member_of", "required") and self._chance(0.2):
                    filters.append((name, makers[name]()))
        return Operation("GET", url_of("/resource_providers", filters), version)

    def _inventory(self) -> dict[str, Any]:
        total = self._one(1, 2, 4, 8, 10, 16, 64)
        record: dict[str, Any] = {"total": total}
        if self._chance(0.15):
            record["reserved"] = self._one(0, 1, total, total + 1)
        if self._chance(0.15):
            record["min_unit"] = self._one(1, 2, 3)
        if self._chance(0.15):
            record["max_unit"] = self._one(1, 2, total)
        if self._chance(0.15):
            record["step_size"] = self._one(1, 2, 3)
        if self._chance(0.15):
            record["allocation_ratio"] = self._one(0, 0.5, 1, 1.5, 16.0, 1e-3)
        if self._chance(0.04):
            name = self._one("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
            record[name] = self._one(0, -1, 2**31 - 1, 2**31, 2**63, "1", None, 1.5, True, [], 3.5e38)
        return record

    def post_inventory(self, version: int) -> Operation:
        provider = self._provider()
        body = {"resource_class": self._class(), **self._inventory()}
        if self._chance(0.2):
            body["resource_provider_generation"] = self._generation(provider)
        return Operation("POST", f"/resource_providers/{provider}/inventories", version, body)

    def put_inventory(self, version: int) -> Operation:
        provider = self._provider()
        body = {**self._inventory(), "resource_provider_generation": self._generation(provider)}
        url = f"/resource_providers/{provider}/inventories/{self._class()}"
        return Operation("PUT", url, version, body)

    def put_inventories(self, version: int) -> Operation:
        provider = self._provider()
        return Operation(
            "PUT", f"/resource_providers/{provider}/inventories", version, self._inventories(provider)
        )

    def _inventories(self, provider: str) -> dict[str, Any]:
        names = self._some(CLASSES, 0, 3)
        return {
            "inventories": {name: self._inventory() for name in names},
            "resource_provider_generation": self._generation(provider),
        }

    def delete_inventory(self, version: int) -> Operation:
        name = "" if self._chance(0.3) else f"/{self._class()}"
        return Operation("DELETE", f"/resource_providers/{self._provider()}/inventories{name}", version)

    def get_inventory(self, version: int) -> Operation:
        url = f"/resource_providers/{self._provider()}/inventories/{self._class()}"
        return Operation("GET", url, version)

    def put_traits(self, version: int) -> Operation:
        provider = self._provider()
        traits = self._some(TRAITS, 0, 3) + [SHARES] * self._chance(0.25) + [self._trait()]
        body = {"traits": sorted(set(traits)), "resource_provider_generation": self._generation(provider)}
        return Operation("PUT", f"/resource_providers/{provider}/traits", max(version, 6), body)

    def delete_traits(self, version: int) -> Operation:
        return Operation("DELETE", f"/resource_providers/{self._provider()}/traits", version)

    def put_aggregates(self, version: int) -> Operation:
        provider = self._provider()
        aggregates = self._some(AGGREGATES, 0, 2)
        if self._chance(0.02):
            aggregates.append(self._one("no-uuid", *aggregates))
        body: Any = aggregates
        if version >= 19:
            body = {"aggregates": aggregates, "resource_provider_generation": self._generation(provider)}
        return Operation("PUT", f"/resource_providers/{provider}/aggregates", version, body)

    def add_class(self, version: int) -> Operation:
        name = self._one(*CUSTOM_CLASSES)
        if version < 7:
            return Operation("POST", "/resource_classes", version, {"name": name})
        return Operation("PUT", f"/resource_classes/{name}", version)

    def change_class(self, version: int) -> Operation:
        name = self._one(*CLASSES)
        if self._chance(0.3):
            version = self._one(2, 3, 6)
            return Operation(
                "PUT", f"/resource_classes/{name}", version, {"name": self._one(*CUSTOM_CLASSES, "VCPU")}
            )
        return Operation(self._one("GET", "DELETE"), f"/resource_classes/{name}", version)

    def list_names(self, version: int) -> Operation:
        kind = self._one("resource_classes", "traits")
        query = ""
        if kind == "traits":
            query = self._one(
                "",
                "?associated=true",
                "?associated=false",
                "?associated=maybe",
                "?name=startswith:CUSTOM",
                "?name=in:CUSTOM_X,HW_NUMA_ROOT",
                "?name=x",
                "?name=startswith:CUSTOM&associated=True",
            )
        return Operation("GET", f"/{kind}{query}", version)

    def add_trait(self, version: int) -> Operation:
        return Operation("PUT", f"/traits/{self._one(*CUSTOM_TRAITS)}", max(version, 6))

    def change_trait(self, version: int) -> Operation:
        return Operation(self._one("GET", "DELETE", "PUT"), f"/traits/{self._trait()}", version)

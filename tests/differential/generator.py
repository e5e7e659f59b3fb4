"""Random operations on a small world, so that they meet: few providers, classes, traits and consumers."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from differential.operations import LATEST, Operation, consumer_generation, generation
from support.placement_api import uuid_of

PROVIDERS = [uuid_of(f"p{number}") for number in range(9)]
CONSUMERS = [uuid_of(f"c{number}") for number in range(6)]
AGGREGATES = [uuid_of(f"a{number}") for number in range(3)]
NOWHERE = uuid_of("none")
CUSTOM_CLASSES = ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]
CLASSES = ["VCPU", "VCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF", *CUSTOM_CLASSES]
SHARES = "MISC_SHARES_VIA_AGGREGATE"
CUSTOM_TRAITS = ["CUSTOM_X", "CUSTOM_Y", "CUSTOM_Z"]
TRAITS = ["HW_CPU_X86_AVX", "HW_NUMA_ROOT", *CUSTOM_TRAITS]
PROJECTS = ["project-1", "project-2"]
USERS = ["user-1", "user-2"]
TYPES = ["INSTANCE", "MIGRATION"]


_MEDIA_TYPES = (
    "application/json",
    "application/json; charset=utf-8",
    "text/plain",
    "text/html",
    "*/*",
    "application/*",
    "text/html, application/json;q=0.5",
    "image/png",
)
_VERSIONS = (
    "placement latest",
    "placement 1.40",
    "placement 2.0",
    "placement 1",
    "placement x.y",
    "compute 2.1",
    "compute 2.1, placement 1.10",
    "1.10",
    "",
)


class Generator:
    """An endless source of operations, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._made = 0

    def next(self) -> Operation:
        """The next operation. The first ones fill the world, later ones also take from it and ask."""
        self._made += 1
        weights = _FILLING if self._made <= 40 else _LIVING
        make = self._random.choices(list(weights), list(weights.values()))[0]
        version = LATEST if self._random.random() < 0.5 else self._random.randint(0, LATEST)
        operation = make(self, version)
        return self._spoil(operation) if self._chance(0.06) else operation

    def _spoil(self, operation: Operation) -> Operation:
        """The operation with something about it that is seldom right."""
        body = operation.body
        spoils: list[dict[str, Any]] = [
            {"version": self._random.randint(0, LATEST)},
            {"version": self._random.randint(0, LATEST)},
            {"method": self._one("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD")},
            {"url": operation.url + self._one("/", "/x", "?colour=red", "&limit=x", "%20")},
            {"more": ((self._one("content-type", "accept"), self._one(*_MEDIA_TYPES)),)},
            {"more": (("openstack-api-version", self._one(*_VERSIONS)),)},
            {"body": self._one(None, b"", b"{", b"null", [], {}, "x", 7)},
        ]
        if isinstance(body, dict) and body:
            spoils += [{"body": {**body, self._one("colour", *body): self._one(None, 1, "x", [], {})}}] * 2
            # Not the uuid of a new provider: each service would make up its own.
            gone = self._one("nothing", *(name for name in body if name != "uuid"))
            spoils.append({"body": {name: value for name, value in body.items() if name != gone}})
        return replace(operation, **self._one(*spoils))

    # Choices

    def _one(self, *values: Any) -> Any:
        return self._random.choice(values)

    def _some(self, values: list[str], least: int = 0, most: int = 3) -> list[str]:
        values = sorted(set(values))
        return self._random.sample(values, self._random.randint(least, min(most, len(values))))

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _provider(self) -> str:
        return NOWHERE if self._chance(0.03) else self._random.choice(PROVIDERS)

    def _consumer(self) -> str:
        return self._random.choice(CONSUMERS)

    def _class(self) -> str:
        return "CUSTOM_UNKNOWN" if self._chance(0.02) else self._random.choice(CLASSES)

    def _trait(self) -> str:
        if self._chance(0.02):
            return "CUSTOM_UNKNOWN"
        return self._random.choice([*TRAITS, SHARES] if self._chance(0.2) else TRAITS)

    def _generation(self, provider: str) -> str:
        return generation(provider, self._one(-1, 1) if self._chance(0.08) else 0)

    def _amount(self) -> int:
        return self._random.choice((1, 1, 1, 2, 2, 3, 4, 8, 16))

    # Providers

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
        return Operation("GET", _url("/resource_providers", filters), version)

    # What they have

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

    # Names

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

    # Allocations

    def _held(self, providers: list[str]) -> dict[str, Any]:
        return {
            provider: {
                "resources": {name: self._amount() for name in self._some(CLASSES, 1, 2)}
                if not self._chance(0.02)
                else {"VCPU": self._one(0, -1, 2**31, 2**64, "1", 1.5)}
            }
            for provider in providers
        }

    def _allocations(self, version: int, consumer: str, empty: bool) -> dict[str, Any]:
        providers = [] if empty else [self._provider() for _ in range(self._one(1, 1, 1, 2, 3))]
        held = self._held(providers)
        body: dict[str, Any] = {"allocations": held}
        if version < 12:
            body["allocations"] = [
                {"resource_provider": {"uuid": provider}, **each} for provider, each in held.items()
            ]
        if version >= 8:
            body |= {"project_id": self._one(*PROJECTS), "user_id": self._one(*USERS)}
        if version >= 28:
            off = self._one(-1, 1) if self._chance(0.08) else 0
            body["consumer_generation"] = consumer_generation(consumer, off)
        if version >= 34 and self._chance(0.2):
            body["mappings"] = {"": providers} if providers else {}
        if version >= 38:
            body["consumer_type"] = self._one(*TYPES)
        return body

    def put_allocations(self, version: int) -> Operation:
        consumer = self._consumer()
        body = self._allocations(version, consumer, self._chance(0.07))
        return Operation("PUT", f"/allocations/{consumer}", version, body)

    def post_allocations(self, version: int) -> Operation:
        version = max(version, 13)
        body = {
            consumer: self._allocations(version, consumer, self._chance(0.3))
            for consumer in self._some(CONSUMERS, 1, 3)
        }
        return Operation("POST", "/allocations", version, body)

    def get_allocations(self, version: int) -> Operation:
        return Operation("GET", f"/allocations/{self._consumer()}", version)

    def delete_allocations(self, version: int) -> Operation:
        return Operation("DELETE", f"/allocations/{self._consumer()}", version)

    def get_usages(self, version: int) -> Operation:
        query = [("project_id", self._one(*PROJECTS))]
        if self._chance(0.5):
            query.append(("user_id", self._one(*USERS)))
        if version >= 38 and self._chance(0.6):
            query.append(("consumer_type", self._one(*TYPES, "all", "unknown", "OTHER")))
        return Operation("GET", _url("/usages", query), version)

    def reshape(self, version: int) -> Operation:
        version = max(version, 30)
        consumers = self._some(CONSUMERS, 0, 2)
        body = {
            "inventories": {
                provider: self._inventories(provider) for provider in self._some(PROVIDERS, 1, 2)
            },
            "allocations": {
                consumer: self._allocations(version, consumer, self._chance(0.2)) for consumer in consumers
            },
        }
        return Operation("POST", "/reshaper", version, body)

    # Candidates

    def _resources(self) -> str:
        names = self._some(CLASSES, 1, 2)
        return ",".join(f"{name}:{self._one(1, 1, 1, 2, 3, 4)}" for name in names)

    def _required(self, version: int) -> str:
        if version >= 39 and self._chance(0.3):
            return "in:" + ",".join(self._some(TRAITS, 1, 3))
        forbid = 0.35 if version >= 22 else 0.02
        return ",".join(
            ("!" if self._chance(forbid) else "") + self._trait() for _ in range(self._one(1, 1, 2))
        )

    def _member_of(self, version: int) -> str:
        aggregates = self._some(AGGREGATES, 1, 2)
        text = aggregates[0] if len(aggregates) == 1 else "in:" + ",".join(aggregates)
        return ("!" if self._chance(0.3 if version >= 32 else 0.02) else "") + text

    def get_candidates(self, version: int) -> Operation:
        version = max(version, 10)
        granular = self._one(0, 0, 1, 1, 2, 2, 3) if version >= 25 else 0
        suffixes = ["1", "2", "3"] if version < 33 else ["_A", "_B", "3"]
        suffixes = suffixes[:granular] if granular and self._chance(0.4) else ["", *suffixes[:granular]]
        query: list[tuple[str, str]] = []
        bare: list[str] = []
        for suffix in suffixes:
            if version >= 36 and suffix and len(suffixes) > 1 and self._chance(0.25):
                bare.append(suffix)
            else:
                query.append((f"resources{suffix}", self._resources()))
            if version >= 17 and self._chance(0.35):
                query.append((f"required{suffix}", self._required(version)))
                if self._chance(0.15):
                    query.append((f"required{suffix}", self._required(version)))
            if version >= 21 and self._chance(0.25):
                query.append((f"member_of{suffix}", self._member_of(version)))
                if self._chance(0.2):
                    query.append((f"member_of{suffix}", self._member_of(version)))
            if version >= 31 and self._chance(0.1):
                query.append((f"in_tree{suffix}", self._provider()))
        if granular > 1 or self._chance(0.1):
            query.append(("group_policy", self._one("none", "isolate")))
        if version >= 35 and self._chance(0.15):
            query.append(("root_required", self._required(38)))
        named = [suffix for suffix in suffixes if suffix]
        if version >= 36 and named and (bare or self._chance(0.25)):
            subtree = sorted({*bare, *self._some(named, 1, 3)})
            query.append(("same_subtree", ",".join(subtree)))
        if version >= 16 and self._chance(0.2):
            query.append(("limit", self._one("1", "2", "5")))
        return Operation("GET", _url("/allocation_candidates", query), version)


Maker = Callable[[Generator, int], Operation]

_FILLING: dict[Maker, int] = {
    Generator.create_provider: 12,
    Generator.post_inventory: 10,
    Generator.put_inventories: 5,
    Generator.put_traits: 7,
    Generator.put_aggregates: 6,
    Generator.add_class: 4,
    Generator.add_trait: 5,
    Generator.put_allocations: 3,
}
_LIVING: dict[Maker, int] = {
    Generator.create_provider: 4,
    Generator.update_provider: 4,
    Generator.delete_provider: 2,
    Generator.get_provider: 4,
    Generator.list_providers: 6,
    Generator.post_inventory: 5,
    Generator.put_inventory: 4,
    Generator.put_inventories: 3,
    Generator.delete_inventory: 2,
    Generator.get_inventory: 1,
    Generator.put_traits: 4,
    Generator.delete_traits: 1,
    Generator.put_aggregates: 4,
    Generator.add_class: 2,
    Generator.change_class: 2,
    Generator.list_names: 2,
    Generator.add_trait: 1,
    Generator.change_trait: 2,
    Generator.put_allocations: 12,
    Generator.post_allocations: 5,
    Generator.get_allocations: 3,
    Generator.delete_allocations: 2,
    Generator.get_usages: 3,
    Generator.reshape: 4,
    Generator.get_candidates: 25,
}


def _url(path: str, query: list[tuple[str, str]]) -> str:
    return f"{path}?{urlencode(query, quote_via=quote, safe=':,!')}" if query else path

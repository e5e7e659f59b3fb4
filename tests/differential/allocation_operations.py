"""Random operations on allocations, and queries for allocation candidates."""

from typing import Any

from differential.choices import CLASSES, CONSUMERS, PROJECTS, PROVIDERS, TYPES, USERS, url_of
from differential.operations import Operation, consumer_generation
from differential.provider_operations import ProviderOperations


class AllocationOperations(ProviderOperations):
    """Makes operations on allocations, reshapes, and queries for allocation candidates."""

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
        return Operation("GET", url_of("/usages", query), version)

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
        return Operation("GET", url_of("/allocation_candidates", query), version)

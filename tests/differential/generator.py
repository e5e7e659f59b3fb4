"""Random operations on a small world, whose few providers, classes and consumers make them interact."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from differential.allocation_operations import AllocationOperations
from differential.operations import LATEST, Operation

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


class Generator(AllocationOperations):
    """An endless source of operations, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._made = 0

    def next(self) -> Operation:
        """Return the next operation. The first ones fill the world; later ones also delete and query."""
        self._made += 1
        weights = _FILLING if self._made <= 40 else _LIVING
        make = self._random.choices(list(weights), list(weights.values()))[0]
        version = LATEST if self._random.random() < 0.5 else self._random.randint(0, LATEST)
        operation = make(self, version)
        return self._spoil(operation) if self._chance(0.06) else operation

    def _spoil(self, operation: Operation) -> Operation:
        """Return the operation with one change that is mostly an error."""
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

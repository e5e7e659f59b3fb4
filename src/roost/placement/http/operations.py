"""Every operation: since which version it is there, what its body is, and what it answers with."""

from dataclasses import dataclass
from typing import Any

from roost.placement.http import bodies
from roost.placement.http.microversions import ByVersion

NO_BODY = ByVersion[Any]({0: None})


@dataclass(frozen=True)
class Operation:
    """``since``: the first version; before it the answer is a 404, or ``hidden_as``.

    ``body``: the type of the JSON body at each version, None where there is none. ``answers_json``:
    whether the answer has a body, so that the client must accept JSON.
    """

    since: int = 0
    body: ByVersion[Any] = NO_BODY
    answers_json: bool = False
    hidden_as: int = 404


def _read(since: int = 0) -> Operation:
    return Operation(since, answers_json=True)


def _write(starts: dict[int, Any]) -> Operation:
    """An operation with a body, there since the first version that has a type for it."""
    since = min(starts)
    return Operation(since, ByVersion({0: None, **starts}))


OPERATIONS: dict[str, dict[str, Operation]] = {
    "/": {"GET": Operation()},
    "/resource_providers": {
        "GET": _read(),
        "POST": _write({0: bodies.NewProvider, 14: bodies.NewProviderInTree}),
    },
    "/resource_providers/{uuid}": {
        "GET": _read(),
        "DELETE": Operation(),
        "PUT": _write({0: bodies.ProviderUpdate, 14: bodies.ProviderUpdateInTree}),
    },
    "/resource_providers/{uuid}/inventories": {
        "GET": _read(),
        "POST": _write({0: bodies.NewInventory}),
        "PUT": _write({0: bodies.AllInventories}),
        "DELETE": Operation(since=5, hidden_as=405),
    },
    "/resource_providers/{uuid}/inventories/{resource_class}": {
        "GET": _read(),
        "PUT": _write({0: bodies.OneInventory}),
        "DELETE": Operation(),
    },
    "/resource_providers/{uuid}/usages": {"GET": _read()},
    "/resource_providers/{uuid}/aggregates": {
        "GET": _read(1),
        "PUT": _write({1: bodies.UniqueUuids, 19: bodies.Aggregates}),
    },
    "/resource_providers/{uuid}/traits": {
        "GET": _read(6),
        "PUT": _write({6: bodies.Traits}),
        "DELETE": Operation(since=6),
    },
    "/resource_providers/{uuid}/allocations": {"GET": _read()},
    "/resource_classes": {"GET": _read(2), "POST": _write({2: bodies.NewClass})},
    "/resource_classes/{name}": {
        "GET": _read(2),
        "PUT": _write({2: bodies.NewClass, 7: None}),
        "DELETE": Operation(since=2),
    },
    "/traits": {"GET": _read(6)},
    "/traits/{name}": {
        "GET": Operation(since=6),
        "PUT": Operation(since=6),
        "DELETE": Operation(since=6),
    },
    "/allocations": {
        "POST": _write(
            {
                13: bodies.Several[bodies.ConsumerAllocations],
                28: bodies.Several[bodies.AllocationsAtGeneration],
                34: bodies.Several[bodies.MappedAllocations],
                38: bodies.Several[bodies.TypedAllocations],
            }
        )
    },
    "/allocations/{consumer}": {
        "GET": _read(),
        "PUT": _write(
            {
                0: bodies.ListedAllocations,
                8: bodies.OwnedListedAllocations,
                12: bodies.NonemptyAllocations,
                28: bodies.AllocationsAtGeneration,
                34: bodies.MappedAllocations,
                38: bodies.TypedAllocations,
            }
        ),
        "DELETE": Operation(),
    },
    "/allocation_candidates": {"GET": _read(10)},
    "/usages": {"GET": _read(9)},
    "/reshaper": {
        "POST": _write({30: bodies.ReshapeAtGeneration, 34: bodies.MappedReshape, 38: bodies.TypedReshape})
    },
}
"""By URL template and method."""

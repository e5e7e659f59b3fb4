"""Every operation of the Placement API, as a row."""

from collections.abc import Mapping
from typing import Any, Final

import falcon.asgi

from roost.placement.access import PREFIX
from roost.placement.errors import BadRequest, Conflict
from roost.placement.http import (
    aggregates,
    allocations,
    bodies,
    candidates,
    inventories,
    providers,
    reshaper,
    resource_classes,
    root,
    traits,
    usages,
)
from roost.placement.http.service import PlacementApi
from roost.placement.http.versioned import FirstCheck, QueryAtVersion, VersionedOperation
from roost.placement.known_names import provider_row
from roost.placement.wire.microversions import ByVersion
from roost.placement.wire.query import last
from roost.placement.wire.uuids import is_uuid_like
from roost.web.errors import NotAllowed
from roost.web.operation import OPEN, Handler
from roost.web.policy import Rule
from roost.web.query import read_parameters


async def _check_provider(service: PlacementApi, params: Mapping[str, str]) -> None:
    """Raise `NotFound` unless the provider in the path exists."""
    provider_row(await service.ledger.current(), params["uuid"])


async def _check_consumer(service: PlacementApi, params: Mapping[str, str]) -> None:
    """Raise `BadRequest` unless the consumer in the path is a uuid."""
    if not is_uuid_like(params["consumer"]):
        raise BadRequest(f"Malformed consumer_uuid: {params['consumer']}")


def _project_of_usages(req: falcon.asgi.Request) -> str | None:
    return last(read_parameters(req), "project_id")


def _rule(name: str) -> Rule:
    return Rule(PREFIX + name)


def _read(path: str, rule: Rule, handler: Handler, since: int = 0, **more: Any) -> VersionedOperation:
    """Return the row of a GET whose response is JSON."""
    return VersionedOperation("GET", path, rule, handler, since=since, answer=dict[str, Any], **more)


def _write(
    method: str,
    path: str,
    rule: str,
    handler: Handler,
    starts: dict[int, Any],
    *,
    first_check: FirstCheck | None = None,
    **more: Any,
) -> VersionedOperation:
    """Return the row of an operation with a body. ``starts``: the type of the body by its first version."""
    return VersionedOperation(
        method,
        path,
        _rule(rule),
        handler,
        since=min(starts),
        bodies=ByVersion({0: None, **starts}),
        first_check=first_check,
        provides=(),
        raises=(BadRequest, Conflict),
        **more,
    )


def _delete(path: str, rule: str, handler: Handler, **more: Any) -> VersionedOperation:
    """Return the row of a DELETE, which has no bodies."""
    return VersionedOperation(
        "DELETE", path, _rule(rule), handler, status=204, provides=(), raises=(Conflict,), **more
    )


_PROVIDERS: Final = "/resource_providers"
_PROVIDER: Final = "/resource_providers/{uuid}"
_INVENTORIES: Final = "/resource_providers/{uuid}/inventories"
_INVENTORY: Final = "/resource_providers/{uuid}/inventories/{resource_class}"
_AGGREGATES: Final = "/resource_providers/{uuid}/aggregates"
_PROVIDER_TRAITS: Final = "/resource_providers/{uuid}/traits"
_CONSUMER: Final = "/allocations/{consumer}"
_CLASS: Final = "/resource_classes/{name}"
_TRAIT: Final = "/traits/{name}"

OPERATIONS: Final = (
    VersionedOperation("GET", "/", OPEN, root.list_versions, provides=(), answer=dict[str, Any]),
    # Resource providers
    _read(
        _PROVIDERS,
        _rule("resource_providers:list"),
        providers.list_providers,
        query=QueryAtVersion(_PROVIDERS),
    ),
    _write(
        "POST",
        _PROVIDERS,
        "resource_providers:create",
        providers.create_provider,
        {0: bodies.NewProvider, 14: bodies.NewProviderInTree},
        statuses=(201,),
    ),
    _read(_PROVIDER, _rule("resource_providers:show"), providers.show_provider),
    _delete(_PROVIDER, "resource_providers:delete", providers.delete_provider),
    _write(
        "PUT",
        _PROVIDER,
        "resource_providers:update",
        providers.update_provider,
        {0: bodies.ProviderUpdate, 14: bodies.ProviderUpdateInTree},
        first_check=_check_provider,
    ),
    # Their inventories
    _read(_INVENTORIES, _rule("resource_providers:inventories:list"), inventories.list_inventories),
    _write(
        "POST",
        _INVENTORIES,
        "resource_providers:inventories:create",
        inventories.add_inventory,
        {0: bodies.NewInventory},
        first_check=_check_provider,
        status=201,
    ),
    _write(
        "PUT",
        _INVENTORIES,
        "resource_providers:inventories:update",
        inventories.set_inventories,
        {0: bodies.AllInventories},
        first_check=_check_provider,
    ),
    _delete(
        _INVENTORIES,
        "resource_providers:inventories:delete",
        inventories.delete_inventories,
        since=5,
        hidden_as=NotAllowed,
    ),
    _read(_INVENTORY, _rule("resource_providers:inventories:show"), inventories.show_inventory),
    _write(
        "PUT",
        _INVENTORY,
        "resource_providers:inventories:update",
        inventories.set_inventory,
        {0: bodies.OneInventory},
        first_check=_check_provider,
    ),
    _delete(_INVENTORY, "resource_providers:inventories:delete", inventories.delete_inventory),
    # Their usages, aggregates, traits and allocations
    _read(
        "/resource_providers/{uuid}/usages", _rule("resource_providers:usages"), usages.list_provider_usages
    ),
    _read(_AGGREGATES, _rule("resource_providers:aggregates:list"), aggregates.list_aggregates, since=1),
    _write(
        "PUT",
        _AGGREGATES,
        "resource_providers:aggregates:update",
        aggregates.set_aggregates,
        {1: bodies.UniqueUuids, 19: bodies.Aggregates},
        first_check=_check_provider,
    ),
    _read(_PROVIDER_TRAITS, _rule("resource_providers:traits:list"), traits.list_provider_traits, since=6),
    _write(
        "PUT",
        _PROVIDER_TRAITS,
        "resource_providers:traits:update",
        traits.set_provider_traits,
        {6: bodies.Traits},
    ),
    _delete(_PROVIDER_TRAITS, "resource_providers:traits:delete", traits.delete_provider_traits, since=6),
    _read(
        "/resource_providers/{uuid}/allocations",
        _rule("resource_providers:allocations:list"),
        allocations.list_provider_allocations,
    ),
    # Resource classes and traits
    _read(
        "/resource_classes", _rule("resource_classes:list"), resource_classes.list_resource_classes, since=2
    ),
    _write(
        "POST",
        "/resource_classes",
        "resource_classes:create",
        resource_classes.create_resource_class,
        {2: bodies.NewClass},
        status=201,
    ),
    _read(_CLASS, _rule("resource_classes:show"), resource_classes.show_resource_class, since=2),
    _write(
        "PUT",
        _CLASS,
        "resource_classes:update",
        resource_classes.update_resource_class,
        {2: bodies.NewClass, 7: None},
        statuses=(201, 204),
    ),
    _delete(_CLASS, "resource_classes:delete", resource_classes.delete_resource_class, since=2),
    _read("/traits", _rule("traits:list"), traits.list_traits, since=6, query=QueryAtVersion("/traits")),
    VersionedOperation(
        "GET", _TRAIT, _rule("traits:show"), traits.show_trait, since=6, status=204, provides=()
    ),
    VersionedOperation(
        "PUT",
        _TRAIT,
        _rule("traits:update"),
        traits.create_trait,
        since=6,
        status=201,
        statuses=(204,),
        provides=(),
        raises=(BadRequest,),
    ),
    _delete(_TRAIT, "traits:delete", traits.delete_trait, since=6),
    # Allocations
    _write(
        "POST",
        "/allocations",
        "allocations:manage",
        allocations.write_allocations,
        {
            13: bodies.Several[bodies.ConsumerAllocations],
            28: bodies.Several[bodies.AllocationsAtGeneration],
            34: bodies.Several[bodies.MappedAllocations],
            38: bodies.Several[bodies.TypedAllocations],
        },
        status=204,
    ),
    _read(_CONSUMER, _rule("allocations:list"), allocations.show_allocations),
    _write(
        "PUT",
        _CONSUMER,
        "allocations:update",
        allocations.set_allocations,
        {
            0: bodies.ListedAllocations,
            8: bodies.OwnedListedAllocations,
            12: bodies.NonemptyAllocations,
            28: bodies.AllocationsAtGeneration,
            34: bodies.MappedAllocations,
            38: bodies.TypedAllocations,
        },
        first_check=_check_consumer,
        status=204,
    ),
    _delete(_CONSUMER, "allocations:delete", allocations.delete_allocations),
    _read(
        "/allocation_candidates",
        _rule("allocation_candidates:list"),
        candidates.list_candidates,
        since=10,
        query=QueryAtVersion("/allocation_candidates", candidates.parse_cached),
    ),
    _read(
        "/usages",
        Rule(f"{PREFIX}usages", project=_project_of_usages),
        usages.list_usages,
        since=9,
        query=QueryAtVersion("/usages"),
    ),
    _write(
        "POST",
        "/reshaper",
        "reshaper:reshape",
        reshaper.reshape,
        {30: bodies.ReshapeAtGeneration, 34: bodies.MappedReshape, 38: bodies.TypedReshape},
        status=204,
    ),
)

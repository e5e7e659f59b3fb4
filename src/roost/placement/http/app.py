"""The Placement API as an ASGI application."""

import falcon.asgi

from roost.ledger import Ledger
from roost.placement.http.aggregates import Aggregates
from roost.placement.http.allocations import Allocations, ConsumerAllocations, ProviderAllocations
from roost.placement.http.auth import open_authenticator
from roost.placement.http.candidates import Candidates
from roost.placement.http.cors import Cors
from roost.placement.http.errors import add_error_handlers, answer_error
from roost.placement.http.forwarded import ForwardedRequest
from roost.placement.http.gate import Gate
from roost.placement.http.inventories import Inventories, InventoryOfClass
from roost.placement.http.operations import OPERATIONS
from roost.placement.http.paths import Paths
from roost.placement.http.policy import Policy
from roost.placement.http.providers import Provider, Providers
from roost.placement.http.request import Request
from roost.placement.http.reshaper import Reshaper
from roost.placement.http.resource import Resource, Service
from roost.placement.http.resource_classes import ResourceClass, ResourceClasses
from roost.placement.http.root import Root
from roost.placement.http.traits import ProviderTraits, Trait, Traits
from roost.placement.http.usages import ProviderUsages, Usages
from roost.placement.options import PlacementOptions

RESOURCES: dict[str, type[Resource]] = {
    "/": Root,
    "/resource_providers": Providers,
    "/resource_providers/{uuid}": Provider,
    "/resource_providers/{uuid}/inventories": Inventories,
    "/resource_providers/{uuid}/inventories/{resource_class}": InventoryOfClass,
    "/resource_providers/{uuid}/usages": ProviderUsages,
    "/resource_providers/{uuid}/aggregates": Aggregates,
    "/resource_providers/{uuid}/traits": ProviderTraits,
    "/resource_providers/{uuid}/allocations": ProviderAllocations,
    "/resource_classes": ResourceClasses,
    "/resource_classes/{name}": ResourceClass,
    "/traits": Traits,
    "/traits/{name}": Trait,
    "/allocations": Allocations,
    "/allocations/{consumer}": ConsumerAllocations,
    "/allocation_candidates": Candidates,
    "/usages": Usages,
    "/reshaper": Reshaper,
}
"""Which class serves each URL of `OPERATIONS`."""


def create_app(ledger: Ledger, options: PlacementOptions) -> falcon.asgi.App:  # type: ignore[type-arg]
    """The API on a ledger. The ledger stays its owner's to close. Raises `OperatorError`."""
    service = Service(ledger, Policy(options.enforce_new_defaults, options.source), options)
    app = falcon.asgi.App(request_type=ForwardedRequest if options.behind_proxy else Request)
    if options.cors.allowed_origin:
        app.add_middleware(Cors(options.cors))
    app.add_middleware(Gate(open_authenticator(options)))
    app.add_middleware(Paths())
    app.resp_options.default_media_type = None  # type: ignore[assignment]  # an empty answer has no type
    for url in OPERATIONS:
        app.add_route(url, RESOURCES[url](service))
    add_error_handlers(app, answer_error)
    return app

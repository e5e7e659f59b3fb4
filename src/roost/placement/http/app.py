"""The Placement API as an ASGI application."""

from functools import cache

import falcon.asgi
import msgspec

from roost.ledger import Ledger, LedgerBusy
from roost.placement.access import open_authenticator, open_policy
from roost.placement.http.conventions import PlacementConventions
from roost.placement.http.operations import OPERATIONS
from roost.placement.http.service import PlacementApi
from roost.placement.options import PlacementOptions
from roost.placement.queries import QueryBudget
from roost.placement.wire.microversions import PlacementRequest, version_text
from roost.storage import StorageError
from roost.web import app
from roost.web.cors import Cors
from roost.web.forwarded import through_proxies
from roost.web.openapi import describe


@cache
def document_at(version: int) -> msgspec.Raw:
    """The document as JSON, with the operations, bodies and queries of a version (its minor number)."""
    present = [operation.at(version) for operation in OPERATIONS if operation.since <= version]
    document = describe(
        present,
        PlacementConventions(),
        title="Placement API",
        text="Requests name the microversion in the header OpenStack-API-Version.",
        version=version_text(version),
    )
    return msgspec.Raw(msgspec.json.encode(document))


def create_app(
    ledger: Ledger, options: PlacementOptions, queries: QueryBudget | None = None
) -> falcon.asgi.App:  # type: ignore[type-arg]
    """Make the API on a ledger, which the caller closes. ``queries``: the budget, if it is shared.

    Raises:
        OperatorError: The options for tokens or policies cannot work.
    """
    return app.create_app(OPERATIONS, kernel(ledger, options, queries))


def kernel(ledger: Ledger, options: PlacementOptions, queries: QueryBudget | None = None) -> app.Kernel:
    """Make the kernel of the application. Raises `OperatorError` as `create_app` does."""
    proxies = options.proxies
    return app.Kernel(
        PlacementApi(ledger, options, queries or QueryBudget(ledger, options.limits)),
        open_authenticator(options),
        open_policy(options),
        PlacementConventions(),
        unavailable=(LedgerBusy, StorageError),
        request_type=PlacementRequest if proxies is None else through_proxies(PlacementRequest, proxies),
        middleware=(Cors(options.cors),) if options.cors.allowed_origin else (),
        body_seconds=options.limits.body_seconds,
    )

"""``/v1/capacity``: capacity and use of the cloud by resource class, and its fullest providers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.fleet import Fleet
from roost.fleet.utilisation import class_uses, fullest_providers
from roost.placement.queries.budget import unchecked
from roost.placement.v1.service import V1Service
from roost.web.request import Request, Response

MOST_PROVIDERS = 1000
"""Fullest providers in a response at most. A request for more is refused."""

_Count = Annotated[int, Meta(ge=0)]


class CapacityQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The extent of the response."""

    fullest: Annotated[int, Meta(ge=0, le=MOST_PROVIDERS, description="The fullest providers at most.")] = 10


class ShownClass(msgspec.Struct, forbid_unknown_fields=True):
    """A resource class: its providers, and their capacity and use in units of the class."""

    providers: _Count
    capacity: _Count
    used: _Count


class ShownProvider(msgspec.Struct, forbid_unknown_fields=True):
    """A provider, and its capacity and use of the class of which the largest share is in use."""

    uuid: str
    name: str
    resource_class: str
    capacity: int
    used: _Count


class ShownCapacity(msgspec.Struct, forbid_unknown_fields=True):
    """Capacity and use at a version of the ledger. `trees`: the providers without a parent."""

    version: _Count
    providers: _Count
    trees: _Count
    resources: dict[str, ShownClass]
    fullest: list[ShownProvider]


async def show_capacity(service: V1Service, req: Request, resp: Response) -> msgspec.Raw:
    """Show the capacity and use of each resource class, and the fullest providers."""
    query: CapacityQuery = req.query

    def compute(fleet: Fleet) -> bytes:
        return msgspec.json.encode(_describe(fleet, query.fullest))

    return msgspec.Raw(await service.queries.answer(("capacity", query.fullest), unchecked, compute))


def _describe(fleet: Fleet, most: int) -> ShownCapacity:
    rows = fleet.rows()
    return ShownCapacity(
        version=fleet.version,
        providers=len(rows),
        trees=int((fleet.parent[rows] < 0).sum()),
        resources={each.resource_class: ShownClass(*each[1:]) for each in class_uses(fleet)},
        fullest=[
            ShownProvider(
                fleet.uuid(each.row), fleet.name(each.row), each.resource_class, each.capacity, each.used
            )
            for each in fullest_providers(fleet, most)
        ],
    )

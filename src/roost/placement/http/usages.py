"""``/usages`` and ``/resource_providers/{uuid}/usages``: sums of allocations."""

from typing import Any

from roost.fleet.owner_usages import Usage
from roost.placement.http.answers import answer
from roost.placement.http.service import PlacementApi
from roost.placement.known_names import provider_row
from roost.placement.wire.microversions import PlacementRequest, Response, Since
from roost.placement.wire.query import last


async def list_usages(service: PlacementApi, req: PlacementRequest, resp: Response) -> None:
    """List the usages of a project, or of one of its users."""
    parameters = req.query
    project, user = last(parameters, "project_id") or "", last(parameters, "user_id")
    found = (await service.ledger.current()).owner_usages.usages(project, user)
    if req.version >= Since.CONSUMER_TYPES:
        usages = _by_type(found, last(parameters, "consumer_type"))
    else:
        usages = _totals(found)
    answer(req, resp, {"usages": usages})


async def list_provider_usages(
    service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str
) -> None:
    """List the usages of a resource provider."""
    fleet = await service.ledger.current()
    row = provider_row(fleet, uuid)
    document = {
        "usages": fleet.usages(row),
        "resource_provider_generation": fleet.generation.item(row),
    }
    answer(req, resp, document)


def _by_type(found: list[Usage], wanted: str | None) -> dict[str, Any]:
    """Return the usages by consumer type. ``wanted``: one type; ``all``: the sum of all types; None: each."""
    if wanted == "all":
        together = {**_totals(found), "consumer_count": sum(usage.consumers for usage in found)}
        return {"all": together} if found else {}
    return {
        usage.consumer_type: {**usage.resources, "consumer_count": usage.consumers}
        for usage in found
        if wanted in (None, usage.consumer_type)
    }


def _totals(found: list[Usage]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for usage in found:
        for name, used in usage.resources.items():
            totals[name] = totals.get(name, 0) + used
    return totals

"""``/traits`` and ``/resource_providers/{uuid}/traits``."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from roost.fleet import Fleet
from roost.model.vocabulary import is_custom
from roost.placement.commands.names import AddTrait, DeleteTrait
from roost.placement.commands.traits_and_aggregates import SetTraits
from roost.placement.errors import BadRequest, NotFound
from roost.placement.http.answers import (
    NAMES,
    answer,
    answer_empty,
    answer_text,
    locate,
    set_freshness,
)
from roost.placement.http.service import PlacementApi
from roost.placement.known_names import provider_row
from roost.placement.queries.budget import unchecked
from roost.placement.wire.microversions import PlacementRequest, Response
from roost.placement.wire.query import last
from roost.web.query import Parameters


async def list_traits(service: PlacementApi, req: PlacementRequest, resp: Response) -> None:
    """List traits."""
    wanted = _wanted(req.query)

    def compute(fleet: Fleet) -> bytes:
        fleet.meter.spend(len(fleet.traits) // NAMES)
        return msgspec.json.encode({"traits": list(_find(fleet, wanted))})

    key = ("traits", req.query_string, req.version)
    answer_text(req, resp, await service.queries.answer(key, unchecked, compute))


async def show_trait(service: PlacementApi, req: PlacementRequest, resp: Response, name: str) -> None:
    """Check that a trait exists."""
    fleet = await service.ledger.current()
    if name not in fleet.traits:
        raise NotFound(f"No such trait(s): {name}.")
    answer_empty(resp)
    set_freshness(req, resp)


async def create_trait(service: PlacementApi, req: PlacementRequest, resp: Response, name: str) -> None:
    """Make sure that a custom trait exists."""
    if not is_custom(name):
        raise BadRequest(
            "The trait is invalid. A valid trait must be no longer than 255 characters, start with the "
            'prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
        )
    is_new = await service.ledger.execute(AddTrait(name))
    answer_empty(resp, 201 if is_new else 204)
    locate(req, resp, f"/traits/{name}")
    set_freshness(req, resp)


async def delete_trait(service: PlacementApi, req: PlacementRequest, resp: Response, name: str) -> None:
    """Delete a custom trait."""
    await service.ledger.execute(DeleteTrait(name))
    answer_empty(resp)


async def list_provider_traits(
    service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str
) -> None:
    """List the traits of a resource provider."""
    fleet = await service.ledger.current()
    row = provider_row(fleet, uuid)
    document = {
        "traits": fleet.traits_of(row),
        "resource_provider_generation": fleet.generation.item(row),
    }
    answer(req, resp, document, modified=fleet.changed_at.item(row))


async def set_provider_traits(
    service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str
) -> None:
    """Replace the traits of a resource provider."""
    body = req.body
    traits = frozenset(body.traits)
    generation = await service.ledger.execute(SetTraits(uuid, traits, body.resource_provider_generation))
    answer(req, resp, {"traits": sorted(traits), "resource_provider_generation": generation})


async def delete_provider_traits(
    service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str
) -> None:
    """Remove all traits from a resource provider."""
    await service.ledger.execute(SetTraits(uuid, frozenset()))
    answer_empty(resp)


class _Wanted(NamedTuple):
    """The filter of a list of traits.

    ``kind`` and ``value``: the condition on names. ``associated``: whether providers have the trait, or None.
    """

    kind: str
    value: str
    associated: bool | None


def _wanted(parameters: Parameters) -> _Wanted:
    named = last(parameters, "name")
    kind, colon, value = (named or "").partition(":")
    if named is not None and (not colon or kind not in ("in", "startswith")):
        raise BadRequest(
            "Badly formatted name parameter. Expected name query string parameter in form: "
            f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{named}"'
        )
    associated = (last(parameters, "associated") or "").lower()
    if "associated" in parameters and associated not in ("true", "false"):
        raise BadRequest('The query parameter "associated" only accepts "true" or "false"')
    return _Wanted(kind, value, associated == "true" if associated else None)


def _find(fleet: Fleet, wanted: _Wanted) -> Iterator[str]:
    names = frozenset(wanted.value.split(","))
    for name in fleet.traits:
        if wanted.kind == "in" and name not in names:
            continue
        if wanted.kind == "startswith" and not name.startswith(wanted.value):
            continue
        if wanted.associated is not None and bool(len(fleet.with_trait(name))) != wanted.associated:
            continue
        yield name

"""``/resource_providers``: the providers themselves."""

import struct
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from roost.fleet import Fleet
from roost.fleet.match import match
from roost.model.request import RequestGroup
from roost.placement.commands.providers import CreateProvider, DeleteProvider, UpdateProvider
from roost.placement.http.answers import answer, answer_empty, answer_text, href, locate
from roost.placement.http.service import PlacementApi
from roost.placement.known_names import check_classes, check_traits, provider_row
from roost.placement.moments import VERSION
from roost.placement.wire.microversions import PlacementRequest, Response, Since
from roost.placement.wire.query import (
    last,
    parse_member_of,
    parse_required,
    parse_resources,
)
from roost.web.observation import LONG
from roost.web.query import Parameters

LINKS = {"inventories": 0, "usages": 0, "aggregates": 1, "traits": 6, "allocations": 11}
"""The links of a provider, and the first microversion of each."""

_LISTED = 20
"""Units of work of a provider in a list."""

_MODIFIED = struct.Struct("<d")
"""The time of the last change of the listed providers, stored in front of the text of their list."""

_NEVER = 0.0


async def list_providers(service: PlacementApi, req: PlacementRequest, resp: Response) -> None:
    """List resource providers."""
    parameters = req.query
    group = _parse_group(parameters, req.version)

    def check(fleet: Fleet) -> None:
        check_classes(fleet, group.resources)
        check_traits(fleet, (*group.required, group.forbidden), 'Invalid trait(s) in "required" parameter: ')

    def compute(fleet: Fleet) -> bytes:
        rows = list(_find(fleet, parameters, group))
        fleet.meter.spend(_LISTED * len(rows))
        modified = float(fleet.changed_at[rows].max()) if rows else _NEVER
        found = [describe(req, fleet, row) for row in rows]
        return _MODIFIED.pack(modified) + msgspec.json.encode({"resource_providers": found})

    found = await service.queries.answer(("providers", req.query_string, req.version), check, compute)
    [modified] = _MODIFIED.unpack_from(found)
    # A long list is not copied.
    text = memoryview(found)[_MODIFIED.size :] if len(found) > LONG else found[_MODIFIED.size :]
    answer_text(req, resp, text, modified=None if modified == _NEVER else modified)


async def create_provider(service: PlacementApi, req: PlacementRequest, resp: Response) -> None:
    """Create a resource provider."""
    body = req.body
    name = str(uuid.uuid4() if body.uuid is UNSET else uuid.UUID(body.uuid))
    await service.ledger.execute(CreateProvider(name, body.name, body.parent))
    locate(req, resp, f"/resource_providers/{name}")
    if req.version < Since.PROVIDER_IN_ANSWER_TO_POST:
        answer_empty(resp, 201)
        return
    await _answer_provider(service, req, resp, name)


async def show_provider(service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str) -> None:
    """Show a resource provider."""
    await _answer_provider(service, req, resp, uuid)


async def update_provider(service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str) -> None:
    """Rename a resource provider, or give it another parent."""
    body = req.body
    may_move = req.version >= Since.PROVIDERS_MOVE
    await service.ledger.execute(UpdateProvider(uuid, body.name, body.parent, may_move))
    await _answer_provider(service, req, resp, uuid)


async def delete_provider(service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str) -> None:
    """Delete a resource provider."""
    await service.ledger.execute(DeleteProvider(uuid))
    answer_empty(resp)


def describe(req: PlacementRequest, fleet: Fleet, row: int) -> dict[str, Any]:
    """Return a provider as the request's version shows it."""
    facts = fleet.facts(row)
    url = href(req, f"/resource_providers/{fleet.uuid(row)}")
    links = [{"rel": "self", "href": url}]
    links += [{"rel": rel, "href": f"{url}/{rel}"} for rel, since in LINKS.items() if since <= req.version]
    document = {"uuid": fleet.uuid(row), "name": facts.name, "generation": facts.generation, "links": links}
    if req.version >= Since.PROVIDER_TREE:
        document["parent_provider_uuid"] = facts.parent
        document["root_provider_uuid"] = fleet.uuid(fleet.root.item(row))
    return document


async def _answer_provider(service: PlacementApi, req: PlacementRequest, resp: Response, uuid: str) -> None:
    fleet = await service.ledger.current()
    resp.set_header(VERSION, str(fleet.version))
    row = provider_row(fleet, uuid)
    answer(req, resp, describe(req, fleet, row), modified=fleet.changed_at.item(row))


def _parse_group(parameters: Parameters, version: int) -> RequestGroup:
    """Return the filters, except name and uuid, as a request group that one provider must satisfy alone."""
    resources = last(parameters, "resources")
    required, forbidden = parse_required(parameters.get("required", []), version)
    member_of, forbidden_aggregates = parse_member_of(parameters.get("member_of", []), version)
    return RequestGroup(
        resources=parse_resources(resources) if resources is not None else {},
        required=required,
        forbidden=forbidden,
        member_of=member_of,
        forbidden_aggregates=forbidden_aggregates,
        in_tree=last(parameters, "in_tree"),
    )


def _find(fleet: Fleet, parameters: Parameters, group: RequestGroup) -> Iterator[int]:
    rows = match(fleet, group)
    if name := last(parameters, "name"):
        rows = rows[rows == np.int32(_or_none(fleet.row_named(name)))]
    if uuid := last(parameters, "uuid"):
        rows = rows[rows == np.int32(fleet.row(uuid) if uuid in fleet else -1)]
    yield from rows.tolist()


def _or_none(row: int | None) -> int:
    return -1 if row is None else row

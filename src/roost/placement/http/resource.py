"""What the resources of the API have in common."""

from dataclasses import dataclass
from typing import Any

from roost.fleet import Fleet, UnknownProvider
from roost.ledger import Ledger
from roost.placement.errors import NotFound
from roost.placement.http.decoding import decode
from roost.placement.http.operations import OPERATIONS
from roost.placement.http.policy import Policy
from roost.placement.http.request import Request
from roost.placement.options import PlacementOptions
from roost.web.errors import HTTPError, TooLarge

LARGEST_BODY = 64 * 2**20
"""Bytes; a reshape of hundreds of thousands of allocations is smaller."""


@dataclass(frozen=True)
class Service:
    """What the operations work with."""

    ledger: Ledger
    policy: Policy
    options: PlacementOptions


class Resource:
    """One URL of the API, with a method ``on_…`` for each of its operations."""

    def __init__(self, service: Service) -> None:
        self.ledger = service.ledger
        self.policy = service.policy
        self.options = service.options


async def read_body(req: Request) -> Any:
    """The request's body, as the type that it has at the request's version; None if it has none then.

    Raises `BadRequest`, `TooLarge`.
    """
    form = OPERATIONS[req.uri_template or "/"][req.method].body.at(req.version)
    if form is None:
        return None
    raw = await req.stream.read(LARGEST_BODY + 1)
    if len(raw) > LARGEST_BODY:
        raise TooLarge(f"A body may have at most {LARGEST_BODY} bytes.")
    return decode(raw, form)


async def read_body_for(resource: Resource, req: Request, uuid: str) -> Any:
    """The request's body. If it is wrong and provider ``uuid`` is not there, `NotFound` is said first."""
    try:
        return await read_body(req)
    except HTTPError:
        provider_row(await resource.ledger.current(), uuid)
        raise


def provider_row(fleet: Fleet, uuid: str) -> int:
    """The row of the provider addressed. Raises `NotFound`."""
    try:
        return fleet.row(uuid)
    except UnknownProvider:
        raise NotFound(f"No resource provider with uuid {uuid} found") from None

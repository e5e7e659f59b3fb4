"""``/v1/allocation_candidates``: candidates by page, all pages of one version."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from roost.fleet import Fleet
from roost.ledger import Ledger
from roost.ledger.feed import token_at
from roost.metrics import catalogue as metrics
from roost.model.request import CandidateQuery
from roost.placement.addressing import check_query
from roost.placement.moments import VERSION
from roost.placement.v1.cursor import Cursor, fingerprint, malformed, read_cursor
from roost.placement.v1.parameters import Asked
from roost.placement.v1.past import Reading
from roost.placement.v1.service import Service
from roost.placement.wire.provider_texts import ProviderTexts
from roost.web.errors import BadRequest, Gone
from roost.web.query import LARGEST_PAGE
from roost.web.request import Request, Response

# These types are for the OpenAPI document only. The response is written as text: creating objects of them
# would be too slow for pages of a thousand candidates.

_Natural = Annotated[int, Meta(ge=0)]


class AllocationOn(msgspec.Struct, forbid_unknown_fields=True):
    """The amounts to allocate on one provider, by resource class."""

    resources: dict[str, Annotated[int, Meta(ge=1)]]


class ShownCandidate(msgspec.Struct, forbid_unknown_fields=True):
    """One candidate: allocations by provider, and the providers of each request group by its suffix."""

    allocations: dict[str, AllocationOn]
    mappings: dict[str, list[str]]


class Capacity(msgspec.Struct, forbid_unknown_fields=True):
    """Capacity and use of one resource class, in units of the class."""

    capacity: int
    used: _Natural


class ShownSummary(msgspec.Struct, forbid_unknown_fields=True):
    """A provider of the candidates, with everything that it has."""

    resources: dict[str, Capacity]
    traits: list[str]
    parent_provider_uuid: str | None
    root_provider_uuid: str


class CandidatePage(msgspec.Struct, forbid_unknown_fields=True):
    """A page of candidates."""

    allocation_requests: Annotated[list[ShownCandidate], Meta(max_length=LARGEST_PAGE)]
    provider_summaries: dict[str, ShownSummary]
    version: Annotated[int, Meta(ge=0, description="Version of the ledger, that of the first page on all.")]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null on the last one.")]


async def list_candidates(service: Service, req: Request, resp: Response) -> dict[str, Any]:
    """List allocation candidates by page, all pages of one version.

    The parameters are those of Placement's GET /allocation_candidates at microversion 1.39, and `can_split`
    and `isolated`. All pages together are exactly the candidates of `version`, regardless of concurrent
    writes.
    """
    asked: Asked = req.query
    own = asked.own
    if own.cursor is None:
        page = await first_page(service, asked.query, own.limit)
    else:
        page = await page_at(service, asked.query, own.limit, own.cursor)
    resp.set_header(VERSION, str(page["version"]))
    return page


async def first_page(service: Service, query: CandidateQuery, limit: int) -> dict[str, Any]:
    """The first ``limit`` candidates at the newest version."""

    def first(fleet: Fleet) -> tuple[dict[str, Any], Cursor | None]:
        # The fleet may change at the next await, so the page is complete before it.
        try:
            check_query(fleet, query)
        except BadRequest as error:
            error.headers = {VERSION: str(fleet.version)}
            raise
        reading = Reading(fleet, query)
        document = _page_of(reading, fleet, service.texts, limit)
        if not reading.has_more():
            return document, None
        return document, Cursor(fleet.version, reading.position, fingerprint(query))

    document, more = await service.queries.in_turn(first)
    document["next"] = await _sign(service.ledger, more)
    return document


async def page_at(service: Service, query: CandidateQuery, limit: int, text: str) -> dict[str, Any]:
    """The page that a cursor names.

    Raises:
        BadRequest: The cursor is malformed, altered, or of another query.
        Gone: The cursor's version cannot be rebuilt.
    """
    cursor = read_cursor(text)
    await _check_signed(service.ledger, cursor, text)
    if fingerprint(query) != cursor.query:
        raise BadRequest("Invalid cursor: it belongs to another query; begin without one.")
    moment = await service.past.at(cursor.version)
    reading = await moment.reading(query, cursor.query, cursor.offset)
    document = _page_of(reading, moment.fleet, moment.texts, limit)
    more = None
    if reading.has_more():
        more = Cursor(cursor.version, reading.position, cursor.query)
        moment.keep(reading, cursor.query)
    document["next"] = await _sign(service.ledger, more)
    return document


def _page_of(reading: Reading, fleet: Fleet, texts: ProviderTexts, limit: int) -> dict[str, Any]:
    number, described = reading.describe(fleet, texts, limit)
    metrics.CANDIDATES.observe(number)
    return {**described, "version": fleet.version}


async def _sign(ledger: Ledger, cursor: Cursor | None) -> str | None:
    return None if cursor is None else cursor.signed(await _token(ledger, cursor.version))


async def _check_signed(ledger: Ledger, cursor: Cursor, text: str) -> None:
    head = (await ledger.current()).version
    if cursor.version > head or not cursor.is_signed(text, await _token(ledger, cursor.version)):
        raise malformed()


async def _token(ledger: Ledger, version: int) -> str:
    token = await ledger.database.read(lambda connection: token_at(connection, version))
    if token is None:
        raise Gone(f"Version {version} has been trimmed away: begin without a cursor.")
    return token

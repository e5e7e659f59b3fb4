"""``/v1/allocation_candidates``: candidates by page, all pages of one version."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from roost.fleet import Fleet
from roost.fleet.errors import TooMuchWork
from roost.ledger import Ledger
from roost.ledger.feed import token_at
from roost.model.request import CandidateQuery
from roost.placement.known_names import check_query
from roost.placement.moments import VERSION
from roost.placement.queries import QueryBudget
from roost.placement.v1.candidate_reader import CandidateReader, EncodedPage, page_of, unpacked
from roost.placement.v1.cursor import Cursor, fingerprint, malformed, read_cursor
from roost.placement.v1.parameters import CandidateQueryParameters
from roost.placement.v1.past import PastVersion
from roost.placement.v1.service import V1Service
from roost.process.metrics import catalogue as metrics
from roost.web.errors import BadRequest, Gone
from roost.web.query import LARGEST_PAGE
from roost.web.request import Request, Response

MOST_SKIPPED = 10_000
"""Candidates before a page that are skipped in the event loop at most, a few at a time.

With more the page is read in a process of its own, which has limits of time and memory: many short parts
would together be a long query.
"""

# These types are for the OpenAPI document only. The response is written as text: creating such objects would
# be too slow for pages of a thousand candidates.

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


async def list_candidates(service: V1Service, req: Request, resp: Response) -> dict[str, Any]:
    """List allocation candidates by page, all pages of one version.

    The parameters are those of Placement's GET /allocation_candidates at microversion 1.39, and `can_split`
    and `isolated`. All pages together are exactly the candidates of `version`, regardless of concurrent
    writes.
    """
    asked: CandidateQueryParameters = req.query
    own = asked.own
    if own.cursor is None:
        page = await first_page(service, asked.query, own.limit)
    else:
        page = await page_at(service, asked.query, own.limit, own.cursor)
    resp.set_header(VERSION, str(page["version"]))
    return page


async def first_page(service: V1Service, query: CandidateQuery, limit: int) -> dict[str, Any]:
    """Return the first ``limit`` candidates at the newest version."""

    def check(fleet: Fleet) -> None:
        try:
            check_query(fleet, query)
        except BadRequest as error:
            error.headers = {VERSION: str(fleet.version)}
            raise

    def compute(fleet: Fleet) -> bytes:
        return page_of(CandidateReader(fleet, query), fleet, service.texts, limit).packed()

    name = fingerprint(query)
    page = unpacked(await service.queries.answer(("page", name, limit), check, compute))
    return await _shown(service.ledger, page, name)


async def page_at(service: V1Service, query: CandidateQuery, limit: int, text: str) -> dict[str, Any]:
    """Return the page that a cursor names.

    Raises:
        BadRequest: The cursor is malformed, altered, or of another query.
        Gone: The cursor's version cannot be rebuilt.
        TooExpensive: The page exceeds the limit of time or memory of a query.
    """
    cursor = read_cursor(text)
    await _check_signed(service.ledger, cursor, text)
    if fingerprint(query) != cursor.query:
        raise BadRequest("Invalid cursor: it belongs to another query; begin without one.")
    past = await service.past.at(cursor.version)
    try:
        page = await _read_on(service.queries, past, query, cursor, limit)
    except TooMuchWork:
        page = await _read_apart(service.queries, past, query, cursor, limit)
    return await _shown(service.ledger, page, cursor.query)


async def _read_on(
    queries: QueryBudget, past: PastVersion, query: CandidateQuery, cursor: Cursor, limit: int
) -> EncodedPage:
    """Read a page in the event loop, with the reader of the pages before it. Raises `TooMuchWork`.

    The fleet of a past version never changes, so other queries can run between the parts.
    """
    reader = past.take(cursor.query, cursor.offset)
    if reader is None:
        reader = await queries.on(past.fleet, lambda fleet: CandidateReader(fleet, query, cursor.offset))
    if cursor.offset - reader.position > MOST_SKIPPED:
        past.keep(reader, cursor.query)
        raise TooMuchWork("more candidates come before the page than the event loop skips")
    while reader.position < cursor.offset:
        if not await queries.on(past.fleet, lambda _: reader.skip(cursor.offset)):
            break
    page = await queries.on(past.fleet, lambda fleet: page_of(reader, fleet, past.texts, limit))
    if page.next is not None:
        past.keep(reader, cursor.query)
    return page


async def _read_apart(
    queries: QueryBudget, past: PastVersion, query: CandidateQuery, cursor: Cursor, limit: int
) -> EncodedPage:
    """Read a page in a process of its own, which skips all pages before it."""

    def compute(fleet: Fleet) -> bytes:
        reader = CandidateReader(fleet, query, cursor.offset)
        while reader.position < cursor.offset and reader.skip(cursor.offset):
            pass
        return page_of(reader, fleet, past.texts, limit).packed()

    return unpacked(await queries.apart_on(past.fleet, compute))


async def _shown(ledger: Ledger, page: EncodedPage, name: bytes) -> dict[str, Any]:
    """Return a page as clients get it. ``name``: the fingerprint of its query."""
    metrics.CANDIDATES.observe(page.number)
    following = None
    if page.next is not None:
        token = await _token(ledger, page.version)
        following = Cursor(page.version, page.next, name).signed(token)
    return {
        "allocation_requests": msgspec.Raw(page.requests),
        "provider_summaries": msgspec.Raw(page.summaries),
        "version": page.version,
        "next": following,
    }


async def _check_signed(ledger: Ledger, cursor: Cursor, text: str) -> None:
    head = (await ledger.current()).version
    if cursor.version > head or not cursor.is_signed(text, await _token(ledger, cursor.version)):
        raise malformed()


async def _token(ledger: Ledger, version: int) -> str:
    token = await ledger.database.read(lambda connection: token_at(connection, version))
    if token is None:
        raise Gone(f"Version {version} has been trimmed away: begin without a cursor.")
    return token

"""Allocation candidates on a given fleet, such as one of the past, as the two HTTP operations answer them."""

import asyncio

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.model.request import CandidateQuery
from roost.placement.client.bodies import FetchedPage, candidates_in
from roost.placement.client.query import query_parameters
from roost.placement.known_names import check_query
from roost.placement.v1.candidate_reader import CandidateReader
from roost.placement.v1.parameters import query_of
from roost.placement.wire.candidate_query import parse_candidate_request
from roost.placement.wire.candidate_texts import CandidateTexts, describe_candidates
from roost.placement.wire.microversions import LATEST
from roost.placement.wire.provider_texts import ProviderTexts
from roost.web.query import Parameters


async def first_candidates(fleet: Fleet, query: CandidateQuery, limit: int | None) -> FetchedPage:
    """Return the first ``limit`` candidates, or all, as ``GET /allocation_candidates`` would.

    Raises: `BadRequest` for an unknown class or trait.
    """
    query = parse_candidate_request(_parameters(query), LATEST).query
    check_query(fleet, query)
    search = CandidateSearch(fleet, query)
    found = search.first(_most(limit))
    described = describe_candidates(fleet, search.needs, found, ProviderTexts(), LATEST)
    return _read(described, None)


async def page_of_candidates(
    fleet: Fleet, query: CandidateQuery, limit: int | None, offset: int
) -> FetchedPage:
    """Return the ``limit`` candidates after ``offset``, or all, as ``GET /v1/allocation_candidates`` would.

    ``next`` of the page is the next offset.

    Raises: `BadRequest` for an unknown class or trait.
    """
    query = query_of(_parameters(query))
    check_query(fleet, query)
    reader = CandidateReader(fleet, query, offset)
    while reader.position < offset and reader.skip(offset):
        await asyncio.sleep(0)
    _, described = reader.describe(fleet, ProviderTexts(), _most(limit))
    return _read(described, str(reader.position) if reader.has_more() else None)


def _parameters(query: CandidateQuery) -> Parameters:
    found: Parameters = {}
    for name, value in query_parameters(query):
        found.setdefault(name, []).append(value)
    return found


def _most(limit: int | None) -> int:
    return 2**62 if limit is None else limit


def _read(described: CandidateTexts, following: str | None) -> FetchedPage:
    return candidates_in(described.document())._replace(next=following)

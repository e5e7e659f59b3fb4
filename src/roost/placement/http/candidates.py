"""``/allocation_candidates``: sets of allocations that satisfy a query."""

import random
from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch, Choice, Need
from roost.model.request import CandidateQuery
from roost.placement.addressing import check_classes, check_traits
from roost.placement.http.answers import answer
from roost.placement.http.candidate_query import CandidateRequest, parse_candidate_request
from roost.placement.http.candidate_texts import SHAPES, candidates_text, summaries_text
from roost.placement.http.microversions import Since
from roost.placement.http.provider_texts import ProviderTexts
from roost.placement.http.query import parse_parameters
from roost.placement.http.request import Request, Response
from roost.placement.http.service import Service
from roost.placement.options import PlacementOptions

_MOST_PARSED = 1_000
"""Parsed queries that are kept. When there are more, all are dropped."""

_LONGEST_PARSED = 2_000
"""Characters of a query. A longer one is not kept."""

_PARSED: dict[tuple[str, int], CandidateRequest] = {}
"""Parsed queries by text and microversion."""


async def list_candidates(service: Service, req: Request, resp: Response) -> None:
    """List allocation candidates."""
    wanted: CandidateRequest = req.query
    fleet = await service.ledger.current()
    check_known(fleet, wanted.query)
    search = CandidateSearch(fleet, wanted.query)
    found = list(_find(fleet, search, wanted.limit, req.version, service.options))
    answer(req, resp, describe(fleet, search.needs, found, service.texts, req.version))


def parse_cached(req: Request) -> CandidateRequest:
    """The query of a request. Schedulers send the same few queries again and again. Raises `BadRequest`."""
    key = (req.query_string, req.version)
    wanted = _PARSED.get(key)
    if wanted is None:
        wanted = parse_candidate_request(parse_parameters(req), req.version)
        if len(_PARSED) >= _MOST_PARSED:
            _PARSED.clear()
        if len(req.query_string) <= _LONGEST_PARSED:
            _PARSED[key] = wanted
    return wanted


def describe(
    fleet: Fleet, needs: Sequence[Need], found: Sequence[Choice], texts: ProviderTexts, version: int
) -> dict[str, msgspec.Raw]:
    """The members of the answer with candidates at a microversion."""
    texts.bring_to(fleet)
    candidates = candidates_text(needs, found, texts, SHAPES.at(version))
    summaries = summaries_text(fleet, needs, found, texts, version)
    return {
        "allocation_requests": msgspec.Raw(candidates.encode()),
        "provider_summaries": msgspec.Raw(summaries.encode()),
    }


def check_known(fleet: Fleet, query: CandidateQuery) -> None:
    """Check that all classes and traits of a query exist. Raises `BadRequest`."""
    check_classes(fleet, query.resources)
    check_traits(fleet, (query.root_required, query.root_forbidden))
    for group in query.groups:
        check_traits(fleet, (*group.required, group.forbidden))


def _find(
    fleet: Fleet, search: CandidateSearch, limit: int | None, version: int, options: PlacementOptions
) -> Iterable[Choice]:
    """The candidates of the answer. Unless they are shuffled, they are generated only as far as it needs."""
    found = search.choices_breadth_first() if options.breadth_first else search.choices()
    if options.max_allocation_candidates >= 0:
        found = islice(found, options.max_allocation_candidates)
    if version < Since.CANDIDATES_IN_TREES and fleet.has_trees:
        taken = [place for place, need in enumerate(search.needs) if need.resources]
        found = (choice for choice in found if _one_of_each_tree(fleet, {choice[1][at] for at in taken}))
    if options.randomize_allocation_candidates:
        everything = list(found)
        return random.sample(everything, len(everything) if limit is None else min(limit, len(everything)))
    return islice(found, limit)


def _one_of_each_tree(fleet: Fleet, rows: set[int]) -> bool:
    """Whether no two providers are in one tree: clients of old microversions know no trees."""
    return len({fleet.root.item(row) for row in rows}) == len(rows)

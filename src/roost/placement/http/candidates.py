"""``/allocation_candidates``: sets of allocations that satisfy a query."""

import random
from collections.abc import Iterable
from itertools import islice

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch, Choice
from roost.metrics import catalogue as metrics
from roost.placement.addressing import check_query
from roost.placement.http.answers import answer
from roost.placement.http.service import Service
from roost.placement.options import PlacementOptions
from roost.placement.wire.candidate_query import CandidateRequest, parse_candidate_request
from roost.placement.wire.candidate_texts import describe_candidates
from roost.placement.wire.microversions import Since
from roost.placement.wire.query import parse_parameters
from roost.placement.wire.request import Request, Response

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
    check_query(fleet, wanted.query)
    search = CandidateSearch(fleet, wanted.query)
    found = list(_find(fleet, search, wanted.limit, req.version, service.options))
    metrics.CANDIDATES.observe(len(found))
    answer(req, resp, describe_candidates(fleet, search.needs, found, service.texts, req.version))


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

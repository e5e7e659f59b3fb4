"""``/allocation_candidates``: sets of allocations that satisfy a query."""

import random
from collections.abc import Iterable
from itertools import islice

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.fleet.choices import Choice, FoundChoices
from roost.fleet.feasibility import feasibilities
from roost.placement.http.answers import answer_text
from roost.placement.http.service import PlacementApi
from roost.placement.known_names import check_query
from roost.placement.moments import VERSION
from roost.placement.options import PlacementOptions
from roost.placement.wire.candidate_query import CandidateRequest, parse_candidate_request
from roost.placement.wire.candidate_texts import describe_candidates, weight_of
from roost.placement.wire.microversions import PlacementRequest, Response, Since
from roost.placement.wire.query import parse_parameters
from roost.process.metrics import catalogue as metrics

_MOST_PARSED = 1_000
"""Parsed queries that are cached at most. With more, the cache is emptied."""

_LONGEST_PARSED = 2_000
"""Characters of a query. A longer one is not cached."""

_NO_LIMIT = 2**62

_PARSED: dict[tuple[str, int], CandidateRequest] = {}
"""Parsed queries by text and microversion."""


async def list_candidates(service: PlacementApi, req: PlacementRequest, resp: Response) -> None:
    """List allocation candidates."""
    wanted: CandidateRequest = req.query
    options = service.options
    # Other responses are not reproducible: their order is random, or depends on options that no record has.
    repeatable = (
        not options.randomize_allocation_candidates
        and not options.breadth_first
        and options.max_allocation_candidates < 0
    )

    def check(fleet: Fleet) -> None:
        # The response is then computed on this fleet, in this process or in one that is forked at once.
        if repeatable:
            resp.set_header(VERSION, str(fleet.version))
        check_query(fleet, wanted.query)

    def compute(fleet: Fleet) -> bytes:
        kept = feasibilities(fleet).for_answer(wanted.query)
        search = CandidateSearch(fleet, wanted.query, feasibility=kept)
        found = _find(fleet, search, wanted.limit, req.version, options)
        metrics.CANDIDATES.observe(len(found))
        return describe_candidates(fleet, search.needs, found, service.texts, req.version).document()

    answer_text(req, resp, await service.queries.answer((req.query_string, req.version), check, compute))


def parse_cached(req: PlacementRequest) -> CandidateRequest:
    """Return the parsed query of a request, cached: schedulers repeat a few queries. Raises `BadRequest`."""
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
    fleet: Fleet,
    search: CandidateSearch,
    limit: int | None,
    version: int,
    options: PlacementOptions,
) -> FoundChoices:
    """Find the candidates of the response. Unless they are shuffled, no more are generated than it has.

    Raises `TooMuchWork`.
    """
    # One more than the meter has work for, so that too many are noticed without a count of each.
    weight = weight_of(search.needs)
    most = fleet.meter.left(_NO_LIMIT) // weight + 1
    if limit is not None and not options.randomize_allocation_candidates:
        most = min(limit, most)
    generated = _NO_LIMIT if options.max_allocation_candidates < 0 else options.max_allocation_candidates
    knows_trees = version >= Since.CANDIDATES_IN_TREES or not fleet.has_trees
    if knows_trees and not options.breadth_first:
        found = search.first(min(most, generated))
    else:
        every = search.choices_breadth_first() if options.breadth_first else search.choices()
        choices: Iterable[Choice] = islice(every, generated)
        if not knows_trees:
            taken = [place for place, need in enumerate(search.needs) if need.resources]
            choices = (each for each in choices if _one_of_each_tree(fleet, {each[1][at] for at in taken}))
        found = FoundChoices(list(islice(choices, most)))
    fleet.meter.spend(len(found) * weight)
    if not options.randomize_allocation_candidates:
        return found
    few = len(found) if limit is None else min(limit, len(found))
    return FoundChoices(random.sample(found.choices, few))


def _one_of_each_tree(fleet: Fleet, rows: set[int]) -> bool:
    """Return whether no two providers are in one tree: clients of old microversions know no trees."""
    fleet.meter.spend(1 + len(rows))
    return len({fleet.root.item(row) for row in rows}) == len(rows)

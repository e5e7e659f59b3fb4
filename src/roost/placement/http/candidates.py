"""``/allocation_candidates``: the ways in which a request can be satisfied."""

import random
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery
from roost.placement.http.answers import answer
from roost.placement.http.candidate_query import CandidateRequest, parse_candidate_request
from roost.placement.http.known import check_classes, check_traits
from roost.placement.http.microversions import ByVersion, Since
from roost.placement.http.query import parse_parameters
from roost.placement.http.request import Request, Response
from roost.placement.http.resource import Resource
from roost.placement.options import PlacementOptions


class Candidates(Resource):
    """/allocation_candidates"""

    async def on_get(self, req: Request, resp: Response) -> None:
        self.policy.authorise(req.identity, "allocation_candidates:list")
        wanted = parse_candidate_request(parse_parameters(req), req.version)
        fleet = await self.ledger.current()
        check_known(fleet, wanted.query)
        found = list(_find(fleet, wanted, req.version, self.options))
        describe = _DESCRIBE.at(req.version)
        document = {
            "allocation_requests": [describe(candidate) for candidate in found],
            "provider_summaries": summaries(fleet, found, wanted.query, req.version),
        }
        answer(req, resp, document)


def check_known(fleet: Fleet, query: CandidateQuery) -> None:
    """Raise `BadRequest` unless the fleet has all classes and traits that the query names."""
    check_classes(fleet, query.resources)
    check_traits(fleet, (query.root_required, query.root_forbidden))
    for group in query.groups:
        check_traits(fleet, (*group.required, group.forbidden))


def _find(
    fleet: Fleet, wanted: CandidateRequest, version: int, options: PlacementOptions
) -> Iterable[Candidate]:
    """The candidates to answer with. Only as many are generated as that takes."""
    search = CandidateSearch(fleet, wanted.query)
    found: Iterable[Candidate] = _in_turn(search) if options.breadth_first else search
    if options.max_allocation_candidates >= 0:
        found = islice(found, options.max_allocation_candidates)
    if version < Since.CANDIDATES_IN_TREES and fleet.has_trees:
        found = (candidate for candidate in found if _one_of_each_tree(fleet, candidate))
    if options.randomize_allocation_candidates:
        everything = list(found)
        limit = len(everything) if wanted.limit is None else min(wanted.limit, len(everything))
        return random.sample(everything, limit)
    return islice(found, wanted.limit)


def _in_turn(search: CandidateSearch) -> Iterator[Candidate]:
    """One candidate of each tree in turn."""
    trees = [search.at(anchor) for anchor in search.anchors.tolist()]
    seen: set[tuple[tuple[str, tuple[str, ...]], ...]] = set()
    while trees:
        unfinished = []
        for tree in trees:
            candidate = next(tree, None)
            if candidate is None:
                continue
            unfinished.append(tree)
            # Trees that reach the same sharing providers can give the same candidate.
            key = tuple((suffix, tuple(serving)) for suffix, serving in candidate.mappings.items())
            if candidate.root not in candidate.allocations and key in seen:
                continue
            seen.add(key)
            yield candidate
        trees = unfinished


def _one_of_each_tree(fleet: Fleet, candidate: Candidate) -> bool:
    """Whether no two providers are of one tree: clients of old versions know no trees."""
    roots = [fleet.root.item(fleet.row(provider)) for provider in candidate.allocations]
    return len(set(roots)) == len(roots)


def _describe_list(candidate: Candidate) -> dict[str, Any]:
    return {
        "allocations": [
            {"resource_provider": {"uuid": provider}, "resources": resources}
            for provider, resources in candidate.allocations.items()
        ]
    }


def _describe_keyed(candidate: Candidate) -> dict[str, Any]:
    return {
        "allocations": {
            provider: {"resources": resources} for provider, resources in candidate.allocations.items()
        }
    }


def describe_mapped(candidate: Candidate) -> dict[str, Any]:
    """A candidate as the latest version shows it."""
    return {**_describe_keyed(candidate), "mappings": candidate.mappings}


_DESCRIBE = ByVersion({0: _describe_list, 12: _describe_keyed, 34: describe_mapped})


def summaries(
    fleet: Fleet, found: list[Candidate], query: CandidateQuery, version: int
) -> dict[str, dict[str, Any]]:
    """The providers of the candidates; from 1.29 all providers of their trees."""
    rows = {fleet.row(provider) for candidate in found for provider in candidate.allocations}
    if version >= Since.CANDIDATES_IN_TREES and fleet.has_trees:
        roots = dict.fromkeys(fleet.root.item(row) for row in sorted(rows))
        rows = {row for root in roots for row in fleet.subtree(root)}
    classes = fleet.stocked_classes() if version >= Since.SUMMARY_OF_ALL_CLASSES else [*query.resources]
    return {fleet.uuid(row): _summary(fleet, row, classes, version) for row in sorted(rows)}


def _summary(fleet: Fleet, row: int, classes: list[str], version: int) -> dict[str, Any]:
    resources = {}
    for name in classes:
        stock = fleet.stock(name)
        slot = stock.slot(row)
        if slot >= 0:
            resources[name] = {"capacity": stock.capacity.item(slot), "used": stock.used.item(slot)}
    summary: dict[str, Any] = {"resources": resources}
    if version >= Since.SUMMARY_TRAITS:
        summary["traits"] = sorted(fleet.traits_of(row), key=fleet.traits.__getitem__)
    if version >= Since.CANDIDATES_IN_TREES:
        summary["parent_provider_uuid"] = fleet.facts(row).parent
        summary["root_provider_uuid"] = fleet.uuid(fleet.root.item(row))
    return summary

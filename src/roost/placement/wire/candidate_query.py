"""Converts the query string of GET /allocation_candidates to the model's `CandidateQuery`."""

import re

import msgspec

from roost.model.request import CandidateQuery, RequestGroup
from roost.placement.errors import BadRequest, BadValue, DuplicateKey, MissingValue
from roost.placement.wire.microversions import Since
from roost.placement.wire.query import (
    GROUP_PARAMETERS,
    last,
    parse_in_tree,
    parse_member_of,
    parse_required,
    parse_resources,
    parse_root_required,
)
from roost.web.query import Parameters

_DIGITS_WITHOUT_LIMIT = 18

_GROUP_PARAMETER = re.compile(f"({'|'.join(GROUP_PARAMETERS)})(.*)")


class CandidateRequest(msgspec.Struct, frozen=True):
    """A query for allocation candidates, and the largest number of them, None for all."""

    query: CandidateQuery
    limit: int | None


def parse_candidate_request(parameters: Parameters, version: int) -> CandidateRequest:
    """Convert checked parameters. Raises `BadRequest`.

    If a parameter is repeated, the first limit and the first group policy count. All ``required``,
    ``member_of`` and ``same_subtree`` count together if the version allows it. Of other parameters the last
    counts.
    """
    root_required, root_forbidden = _root_traits(parameters)
    query = CandidateQuery(
        groups=_groups(parameters, version),
        isolate=parameters.get("group_policy", [""])[0] == "isolate",
        same_subtree=tuple(_subtree(value) for value in parameters.get("same_subtree", ())),
        root_required=root_required,
        root_forbidden=root_forbidden,
    )
    if version >= Since.SAME_SUBTREE:
        _check_subtrees(query)
    else:
        _check_all_have_resources(query.groups)
    if version >= Since.FORBIDDEN_TRAITS:
        _check_traits(query.groups)
    if "group_policy" not in parameters and sum(group.granular for group in query.groups) > 1:
        raise BadRequest(
            'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.'
        )
    return CandidateRequest(query, _limit(parameters))


def _limit(parameters: Parameters) -> int | None:
    """Return the limit. A limit with more digits than any number of candidates counts as None."""
    text = parameters.get("limit", [""])[0]
    return int(text) if 0 < len(text) < _DIGITS_WITHOUT_LIMIT else None


def _groups(parameters: Parameters, version: int) -> tuple[RequestGroup, ...]:
    by_suffix: dict[str, Parameters] = {}
    for name, values in parameters.items():
        matched = _GROUP_PARAMETER.fullmatch(name)
        if matched is not None:
            by_suffix.setdefault(matched[2], {})[matched[1]] = values
    return tuple(_group(suffix, found, version) for suffix, found in by_suffix.items())


def _group(suffix: str, parameters: Parameters, version: int) -> RequestGroup:
    resources = last(parameters, "resources")
    in_tree = last(parameters, "in_tree")
    required, forbidden = parse_required(parameters.get("required", []), version)
    member_of, forbidden_aggregates = parse_member_of(parameters.get("member_of", []), version, suffix)
    return RequestGroup(
        resources=parse_resources(resources) if resources is not None else {},
        suffix=suffix,
        required=required,
        forbidden=forbidden,
        member_of=member_of,
        forbidden_aggregates=forbidden_aggregates,
        in_tree=parse_in_tree(in_tree) if in_tree is not None else None,
    )


def _root_traits(parameters: Parameters) -> tuple[frozenset[str], frozenset[str]]:
    values = parameters.get("root_required", [])
    if not values:
        return frozenset(), frozenset()
    if len(values) > 1:
        raise DuplicateKey("Query parameter 'root_required' may be specified only once.")
    required, forbidden = parse_root_required(values[0])
    if both := required & forbidden:
        raise BadValue(
            "Conflicting required and forbidden traits found in root_required: " + ", ".join(sorted(both))
        )
    return required, forbidden


def _subtree(value: str) -> frozenset[str]:
    suffixes = frozenset(part.strip() for part in value.split(","))
    if "" in suffixes:
        raise BadValue("Empty string (unsuffixed group) can not be specified in `same_subtree` ")
    return suffixes


def _check_subtrees(query: CandidateQuery) -> None:
    """Check that each group without resources is named in `same_subtree`. Raises `BadRequest`."""
    without = [group.suffix for group in query.groups if not group.resources]
    if len(without) == len(query.groups):
        raise MissingValue("There must be at least one resources or resources[$S] parameter.")
    named = frozenset[str]().union(*query.same_subtree)
    loose = [suffix for suffix in without if suffix not in named]
    if loose:
        raise BadValue(
            "Resourceless suffixed group request should be specified in `same_subtree` query param: "
            f"bad group(s) - {loose}."
        )
    suffixes = [group.suffix for group in query.groups]
    unknown = sorted(named.difference(suffixes))
    if unknown:
        raise BadValue(
            f"Real suffixes should be specified in `same_subtree`: {unknown} not found in {suffixes}."
        )


def _check_all_have_resources(groups: tuple[RequestGroup, ...]) -> None:
    """Check that each group has resources, up to 1.35. Raises `BadRequest`."""
    orphans = [f"required{group.suffix}" for group in groups if group.required and not group.resources]
    if orphans:
        raise BadRequest(
            "All traits parameters must be associated with resources.  Found the following orphaned "
            f"traits keys: {', '.join(orphans)}"
        )
    orphans = [
        f"member_of{group.suffix}"
        for group in groups
        if (group.member_of or group.forbidden_aggregates) and not group.resources
    ]
    if orphans:
        raise BadRequest(
            "All member_of parameters must be associated with resources. Found the following orphaned "
            f"member_of keys: {', '.join(orphans)}"
        )
    if not all(group.resources for group in groups):
        raise BadRequest("All request groups must specify resources.")
    if not groups:
        raise BadRequest("At least one request group (`resources` or `resources{$S}`) is required.")


def _check_traits(groups: tuple[RequestGroup, ...]) -> None:
    conflicts = [
        f"required{group.suffix}: ({', '.join(sorted(any_of))})"
        for group in groups
        for any_of in group.required
        if any_of <= group.forbidden
    ]
    if conflicts:
        raise BadRequest(
            "Conflicting required and forbidden traits found in the following traits keys: "
            + ", ".join(sorted(conflicts))
        )

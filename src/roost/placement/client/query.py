"""From a `CandidateQuery` to the query string of GET /allocation_candidates."""

from collections.abc import Iterable, Iterator

from roost.model.request import CandidateQuery, RequestGroup
from roost.placement.client.transport import ANY_TRAIT, OLDEST

Parameter = tuple[str, str]


def query_parameters(query: CandidateQuery) -> list[Parameter]:
    """Return the parameters for ``query`` at microversion 1.39; see `beyond_placement`."""
    parameters = [each for group in query.groups for each in _group(group)]
    isolate = query.isolate or _isolates_all(query)
    if sum(group.granular for group in query.groups) > 1 or isolate:
        parameters.append(("group_policy", "isolate" if isolate else "none"))
    if query.isolated and not isolate:
        parameters.append(("isolated", ",".join(sorted(query.isolated))))
    if split := query.split:
        parameters.append(("can_split", ",".join(split)))
    parameters += [("same_subtree", ",".join(sorted(suffixes))) for suffixes in query.same_subtree]
    root = [*sorted(query.root_required), *(f"!{trait}" for trait in sorted(query.root_forbidden))]
    if root:
        parameters.append(("root_required", ",".join(root)))
    return parameters


def needed_version(query: CandidateQuery) -> str:
    """Return the lowest microversion at which ``query`` can be sent."""
    choice = any(len(any_of) > 1 for group in query.groups for any_of in group.required)
    return ANY_TRAIT if choice else OLDEST


def beyond_placement(query: CandidateQuery) -> str | None:
    """Return the reason why Placement's own API has no request for ``query``; None if it has one."""
    if split := query.split:
        return f"it cannot split {' or '.join(split)} among the providers of a tree (can_split)"
    if query.isolated and not query.isolate and not _isolates_all(query):
        return "it cannot keep some of the request groups apart, and others not (isolated)"
    return None


def _isolates_all(query: CandidateQuery) -> bool:
    return bool(query.isolated) and all(query.isolates(group) for group in query.groups if group.granular)


def _group(group: RequestGroup) -> Iterator[Parameter]:
    suffix = group.suffix
    if group.resources:
        amounts = ",".join(f"{name}:{amount}" for name, amount in group.resources.items())
        yield f"resources{suffix}", amounts
    plain, choices = _split(group.required)
    plain += [f"!{trait}" for trait in sorted(group.forbidden)]
    if plain:
        yield f"required{suffix}", ",".join(plain)
    for choice in choices:
        yield f"required{suffix}", f"in:{choice}"
    for any_of in group.member_of:
        yield f"member_of{suffix}", f"in:{','.join(sorted(any_of))}"
    if group.forbidden_aggregates:
        yield f"member_of{suffix}", f"!in:{','.join(sorted(group.forbidden_aggregates))}"
    if group.in_tree is not None:
        yield f"in_tree{suffix}", group.in_tree


def _split(terms: Iterable[frozenset[str]]) -> tuple[list[str], list[str]]:
    """Split terms into those with one name, and the others as comma-separated lists."""
    single = [name for any_of in terms if len(any_of) == 1 for name in any_of]
    return sorted(single), [",".join(sorted(any_of)) for any_of in terms if len(any_of) > 1]

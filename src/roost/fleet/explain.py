"""Why a query finds what it finds: the trees that each constraint leaves, in the order they are asked.

Why not count while searching: a search asks the rarest class first and each group by itself, so its
counts would not add up to a story, and every decision would pay for what only a refusal needs. Here the
query is built up again, one constraint at a time, and searched each time.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from roost.fleet.candidates import CandidateSearch
from roost.fleet.fleet import Fleet
from roost.model.request import CandidateQuery, RequestGroup


class Left(NamedTuple):
    """A constraint, and the number of trees that could still serve the query with it."""

    constraint: str
    trees: int


def explain(fleet: Fleet, query: CandidateQuery) -> list[Left]:
    """The trees left after each constraint of ``query``. The last entry is exact: trees with a candidate."""
    found: list[Left] = []
    left = len(fleet)
    for constraint, partial in constraints(query):
        # What a search calls anchors may be too many, never too few: so the least so far is nearer.
        left = min(left, len(CandidateSearch(fleet, partial).anchors))
        found.append(Left(constraint, left))
    search = CandidateSearch(fleet, query)
    if not search.single:
        exact = sum(next(search.at(anchor), None) is not None for anchor in search.anchors.tolist())
        found.append(Left("everything from one tree at once", exact))
    return found


def constraints(query: CandidateQuery) -> Iterator[tuple[str, CandidateQuery]]:
    """The name of each constraint, with the query up to and including it."""
    done: tuple[RequestGroup, ...] = ()
    for group in query.groups:
        for name, partial in _of_group(group):
            of_group = f"group {group.suffix}: {name}" if group.granular else name
            yield of_group, CandidateQuery((*done, partial))
        done = (*done, group)
    partial_query = CandidateQuery(done)
    for trait in sorted(query.root_required):
        partial_query = msgspec.structs.replace(
            partial_query, root_required=partial_query.root_required | {trait}
        )
        yield f"root requires {trait}", partial_query
    for trait in sorted(query.root_forbidden):
        partial_query = msgspec.structs.replace(
            partial_query, root_forbidden=partial_query.root_forbidden | {trait}
        )
        yield f"root forbids {trait}", partial_query
    if query.isolate:
        yield "group_policy isolate", msgspec.structs.replace(partial_query, isolate=True)


def _of_group(group: RequestGroup) -> Iterator[tuple[str, RequestGroup]]:
    partial = RequestGroup(suffix=group.suffix)
    if not group.resources:
        yield "any provider", partial
    for name, amount in group.resources.items():
        partial = msgspec.structs.replace(partial, resources={**partial.resources, name: amount})
        yield f"{amount} {name}", partial
    for any_of in group.required:
        partial = msgspec.structs.replace(partial, required=(*partial.required, any_of))
        yield f"required {' or '.join(sorted(any_of))}", partial
    for trait in sorted(group.forbidden):
        partial = msgspec.structs.replace(partial, forbidden=partial.forbidden | {trait})
        yield f"forbidden {trait}", partial
    for any_of in group.member_of:
        partial = msgspec.structs.replace(partial, member_of=(*partial.member_of, any_of))
        yield f"member_of {' or '.join(sorted(any_of))}", partial
    if group.forbidden_aggregates:
        partial = msgspec.structs.replace(partial, forbidden_aggregates=group.forbidden_aggregates)
        yield f"not member_of {' or '.join(sorted(group.forbidden_aggregates))}", partial
    if group.in_tree is not None:
        partial = msgspec.structs.replace(partial, in_tree=group.in_tree)
        yield f"in_tree {group.in_tree}", partial

"""Narrowing a query to some places, whatever groups it has."""

import msgspec

from roost.model.request import CandidateQuery


def narrowed(
    query: CandidateQuery, member_of: frozenset[str] | None = None, in_tree: str | None = None
) -> CandidateQuery:
    """The query with a condition more on its unsuffixed group; on all groups if it has none.

    A granular group alone would not do where there is an unsuffixed one: a sharing provider may serve it
    from outside the place.
    """
    alone = all(group.granular for group in query.groups)
    groups = []
    for group in query.groups:
        if alone or not group.granular:
            if member_of is not None:
                group = msgspec.structs.replace(group, member_of=(*group.member_of, member_of))
            if in_tree is not None:
                group = msgspec.structs.replace(group, in_tree=in_tree)
        groups.append(group)
    return msgspec.structs.replace(query, groups=tuple(groups))

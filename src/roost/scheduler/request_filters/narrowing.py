"""Narrowing a query to some places, whatever groups it has."""

import msgspec

from roost.model.request import CandidateQuery


def narrowed(
    query: CandidateQuery, member_of: frozenset[str] | None = None, in_tree: str | None = None
) -> CandidateQuery:
    """The query with a condition more on its unsuffixed group.

    Granular groups are left alone: a sharing provider may serve one from outside the place. Without an
    unsuffixed group, ``in_tree`` is put on all groups; ``member_of`` on none, because an aggregate of the
    root does not span a tree for granular groups: the filters see to the place then.
    """
    alone = all(group.granular for group in query.groups)
    groups = []
    for group in query.groups:
        if not group.granular and member_of is not None:
            group = msgspec.structs.replace(group, member_of=(*group.member_of, member_of))
        if in_tree is not None and (alone or not group.granular):
            group = msgspec.structs.replace(group, in_tree=in_tree)
        groups.append(group)
    return msgspec.structs.replace(query, groups=tuple(groups))

"""The trees of providers, in an order in which a parent comes before its children.

Rows of a damaged database may name a parent that does not exist, or may form a loop. A loop is broken at its
lowest id, which becomes a root.
"""

from collections import defaultdict
from collections.abc import Mapping

import msgspec


class ProviderTrees(msgspec.Struct, frozen=True):
    """The trees of providers, by the ids of their rows.

    ``order``: all ids, the trees one after another, parents before children. ``parents``: the parent of each
    id that has one. ``roots``: the root of each id. ``orphans``: the ids whose parent does not exist.
    ``loops``: the ids of each loop that was broken, the new root first.
    """

    order: list[int]
    parents: dict[int, int]
    roots: dict[int, int]
    orphans: list[int]
    loops: list[list[int]]


def arrange_trees(parents: Mapping[int, int | None]) -> ProviderTrees:
    """Return the trees of providers, given the id of each one's parent or None."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    roots: list[int] = []
    orphans: list[int] = []
    for row in sorted(parents):
        parent = parents[row]
        if parent is None:
            roots.append(row)
        elif parent not in parents:
            roots.append(row)
            orphans.append(row)
        else:
            children[parent].append(row)
    trees = ProviderTrees([], {}, {}, orphans, [])
    for root in roots:
        _add_tree(trees, children, root)
    # A row that is below no root is in a loop or below one.
    for row in sorted(parents):
        if row not in trees.roots:
            loop = _loop_above(parents, row)
            trees.loops.append(loop)
            children[parents[loop[0]] or 0].remove(loop[0])
            _add_tree(trees, children, loop[0])
    return trees


def _add_tree(trees: ProviderTrees, children: Mapping[int, list[int]], root: int) -> None:
    waiting = [root]
    while waiting:
        row = waiting.pop()
        trees.order.append(row)
        trees.roots[row] = root
        for child in reversed(children.get(row, ())):
            trees.parents[child] = row
            waiting.append(child)


def _loop_above(parents: Mapping[int, int | None], row: int) -> list[int]:
    """Return the loop that the parents of a row lead to: its lowest id, then each one's parent."""
    path: dict[int, None] = {}
    at: int | None = row
    while at is not None and at not in path:
        path[at] = None
        at = parents[at]
    ids = list(path)
    loop = ids[ids.index(at or 0) :]
    lowest = loop.index(min(loop))
    return loop[lowest:] + loop[:lowest]

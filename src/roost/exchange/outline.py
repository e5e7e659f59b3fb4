"""The outline of a forest of providers: who is under whom, in an order that has parents first.

The rows of a damaged database may name parents that are not there, or lead in a circle. Each circle is
broken at its lowest id, which becomes a root.
"""

from collections import defaultdict
from collections.abc import Mapping

import msgspec


class Outline(msgspec.Struct, frozen=True):
    """Row ids. ``order``: all of them, each tree together, parents first; ``parents``: of those that have
    one; ``roots``: of all; ``lost``: those whose parent is not there; ``loops``: what was broken, the new
    root first."""

    order: list[int]
    parents: dict[int, int]
    roots: dict[int, int]
    lost: list[int]
    loops: list[list[int]]


def draw_outline(parents: Mapping[int, int | None]) -> Outline:
    """The outline of rows that name their parents' ids."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    tops: list[int] = []
    lost: list[int] = []
    for row in sorted(parents):
        parent = parents[row]
        if parent is None:
            tops.append(row)
        elif parent not in parents:
            tops.append(row)
            lost.append(row)
        else:
            children[parent].append(row)
    outline = Outline([], {}, {}, lost, [])
    for top in tops:
        _hang(outline, children, top)
    # What no root leads to is in a circle or below one.
    for row in sorted(parents):
        if row not in outline.roots:
            loop = _loop_above(parents, row)
            outline.loops.append(loop)
            children[parents[loop[0]] or 0].remove(loop[0])
            _hang(outline, children, loop[0])
    return outline


def _hang(outline: Outline, children: Mapping[int, list[int]], top: int) -> None:
    waiting = [top]
    while waiting:
        row = waiting.pop()
        outline.order.append(row)
        outline.roots[row] = top
        for child in reversed(children.get(row, ())):
            outline.parents[child] = row
            waiting.append(child)


def _loop_above(parents: Mapping[int, int | None], row: int) -> list[int]:
    """The circle that a row's parents lead into, from its lowest id upwards."""
    path: dict[int, None] = {}
    at: int | None = row
    while at is not None and at not in path:
        path[at] = None
        at = parents[at]
    ids = list(path)
    circle = ids[ids.index(at or 0) :]
    lowest = circle.index(min(circle))
    return circle[lowest:] + circle[:lowest]

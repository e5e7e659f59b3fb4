"""Bars as SVG: a page may have no style of its own, and the attributes of SVG are none."""

from collections.abc import Sequence

import htpy as h

_WIDTH = 1000
_RECT = h.Element("rect")


def use_bar(used: int, capacity: int, label: str) -> h.Element:
    """Return a bar of use: ``used`` of ``capacity``. ``label``: the same in words."""
    share = 0.0 if capacity <= 0 else min(1.0, used / capacity)
    return segments([(share, "used")], label)


def segments(parts: Sequence[tuple[float, str]], label: str) -> h.Element:
    """Return a bar of parts one after another. ``parts``: the share of the whole and the class of each."""
    rects = []
    at = 0.0
    for share, kind in parts:
        rects.append(
            _RECT(
                class_=f"seg-{kind}",
                x=f"{at * _WIDTH:.0f}",
                y="0",
                width=f"{share * _WIDTH:.0f}",
                height="10",
            )
        )
        at += share
    return h.svg(
        ".bar", viewBox=f"0 0 {_WIDTH} 10", preserveAspectRatio="none", role="img", aria_label=label
    )[h.title[label], rects]

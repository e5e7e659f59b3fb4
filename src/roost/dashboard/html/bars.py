"""Bars as SVG: a page may have no style of its own, and the attributes of SVG are none."""

from collections.abc import Sequence

import htpy as h
from markupsafe import Markup

from roost.dashboard.html.values import amount, percent

_RECT = h.Element("rect")


def use_bar(used: int, capacity: int, label: str, *, reserved: int = 0) -> h.Element:
    """Return a bar of use: ``used`` of ``capacity``, and beside it what hosts keep for themselves.

    ``reserved``: in the units of ``capacity``. ``label``: the same in words.
    """
    whole = max(capacity + reserved, used, 1)
    taken, kept = 100 * used / whole, 100 * reserved / whole
    return bar(
        [(taken, "bar-used"), (max(0.0, 100 - taken - kept), "bar-total"), (kept, "bar-reserved")], label
    )


def bar(parts: Sequence[tuple[float, str]], label: str, *, kind: str = "") -> h.Element:
    """Return a bar of parts one after another.

    ``parts``: the per cent of the whole and the class of each. ``label``: the same in words; empty: the words
    stand beside the bar. ``kind``: a further class of the bar.
    """
    rects = []
    at = 0.0
    for width, name in parts:
        if width > 0:
            # As text: a list has hundreds of them, and classes and numbers have nothing to escape.
            rects.append(f'<rect class="{name}" x="{at:.2f}" y="0" width="{width:.2f}" height="8"></rect>')
        at += width
    named = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    return h.svg(class_=["bar", kind], viewBox="0 0 100 8", preserveAspectRatio="none", **named)[
        Markup("".join(rects))
    ]


def use_share(resource_class: str, used: int, capacity: int) -> h.Node:
    """Return a bar of use with its per cent, and the amounts at a hover; a dash without capacity."""
    if capacity <= 0:
        return "–"
    words = f"{amount(resource_class, used)} of {amount(resource_class, capacity)}"
    return h.span(".bar-line")[
        use_bar(used, capacity, words), h.span(".num", title=words)[percent(used, capacity)]
    ]


def swatch(kind: str, size: int = 8) -> h.Element:
    """Return the sample of a colour in a legend. ``kind``: the class that has it."""
    rect = _RECT(class_=kind, width=f"{size}", height=f"{size}")
    return h.svg(".swatch", aria_hidden="true", viewBox=f"0 0 {size} {size}")[rect]

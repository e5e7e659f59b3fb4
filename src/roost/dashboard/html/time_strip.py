"""A strip of time: phases one after another, as SVG."""

from collections.abc import Sequence
from typing import NamedTuple

import htpy as h

_RECT = h.Element("rect")
_TITLE = h.Element("title")
_WHOLE = 1000.0
_LEAST = 3.0
"""Width of a short phase in thousandths of the strip, so that it is seen."""


class Phase(NamedTuple):
    """A phase from ``began`` until ``ended`` (seconds since the epoch). ``kind``: the class of its colour."""

    began: float
    ended: float
    kind: str
    words: str


def time_strip(phases: Sequence[Phase], began: float, ended: float, label: str) -> h.Element:
    """Return a strip of a time. ``label``: all of it in words."""
    whole = max(ended - began, 1e-3)
    rects = []
    for each in phases:
        x = min(_WHOLE - _LEAST, max(0.0, (each.began - began) / whole * _WHOLE))
        width = max(_LEAST, min(_WHOLE - x, (each.ended - each.began) / whole * _WHOLE))
        rects.append(
            _RECT(class_=each.kind, x=f"{x:.1f}", y="0", width=f"{width:.1f}", height="16")[
                _TITLE[each.words]
            ]
        )
    return h.svg(
        ".bar.thick", viewBox="0 0 1000 16", preserveAspectRatio="none", role="img", aria_label=label
    )[rects]

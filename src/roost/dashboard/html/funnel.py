"""The funnel of a decision: a bar for each step that removed hosts."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import htpy as h

from roost.dashboard.html.bars import bar
from roost.dashboard.html.values import number
from roost.dashboard.views.funnel import CHOSEN, FunnelStep
from roost.model.reasons import HostNames
from roost.scheduler.pool.host_pool import KNOWN, OFFERED

_MINUS = "\N{MINUS SIGN}"
_LEAST = 0.6
"""Per cent of the width of a bar of few hosts among many, so that it is seen."""

_WORDS = {
    KNOWN: "Hosts known",
    OFFERED: "Placement has room and traits",
    CHOSEN: "Chosen",
}

_VERBS = ("are", "have", "pass", "fit")
"""Verbs that a step can do without."""

_MOST_NAMES = 12
"""Folded names of hosts that are shown of a step."""


def funnel(steps: Sequence[FunnelStep]) -> h.Node:
    """Return the steps as bars; those that removed no host are one line."""
    whole = max((each.left for each in steps), default=0)
    if not whole:
        return h.p(".muted")["The record has no steps."]
    rows: list[h.Node] = []
    for quiet, group in groupby(steps, key=_is_quiet):
        some = tuple(group)
        rows.append(_quiet(some, whole) if quiet else [_row(each, whole) for each in some])
    return h.ol(".funnel", role="list")[rows]


def step_name(step: FunnelStep) -> h.Node:
    """Return the name of a step in words."""
    verb, _, words = step.text.partition(" ")
    shown = words if verb in _VERBS else step.text
    return _WORDS.get(step.name) or h.bdi[shown[:1].upper() + shown[1:] if shown else step.name]


def _is_quiet(step: FunnelStep) -> bool:
    return step.kind is not None and not step.removed


def _row(step: FunnelStep, whole: int) -> h.Element:
    left, removed = 100 * step.left / whole, 100 * step.removed / whole
    left = max(left, _LEAST) if step.left else 0.0
    removed = min(100 - left, max(removed, _LEAST)) if step.removed else 0.0
    kind = "bar-used" if step.name != CHOSEN else "bar-ok"
    return h.li(class_={"cut": step.kind is not None, "last": step.name == CHOSEN or not step.left})[
        h.span(".funnel-name")[step_name(step), _about(step)],
        bar([(left, kind), (removed, "bar-cut")], ""),
        h.span(".funnel-count.num")[number(step.left), h.span(".visually-hidden")[" left"]],
        h.span(".funnel-cut.num")[f"{_MINUS}{number(step.removed)}" if step.removed else ""],
    ]


def _about(step: FunnelStep) -> h.Node:
    """Return what is known of the removed hosts besides their number."""
    said = []
    if step.alone is not None and step.alone > step.removed:
        said.append(f"{number(step.alone)} do not meet it")
    if step.sole:
        every = step.sole == max(step.removed, step.alone or 0)
        said.append("all of them only for this" if every else f"{number(step.sole)} only for this")
    names = _names(step.hosts)
    if not said and names is None:
        return None
    return h.small(".muted.funnel-about")[", ".join(said), names]


def _names(hosts: HostNames) -> h.Node:
    if not hosts.names:
        return None
    more = len(hosts.names) - _MOST_NAMES
    rest = hosts.left_out + max(0, more)
    shown: Iterable[h.Node] = [[" ", h.bdi[each]] for each in hosts.names[:_MOST_NAMES]]
    return h.details[h.summary["names"], h.span(".folded")[shown], " and more" if rest else None]


def _quiet(steps: Sequence[FunnelStep], whole: int) -> h.Element:
    names = [h.li[step_name(each)] for each in steps]
    left = steps[-1].left
    title = f"{len(steps)} conditions removed none" if len(steps) > 1 else None
    return h.li(".funnel-quiet")[
        h.span(".funnel-name.muted")[
            h.details[h.summary[title], h.ul(".bullets")[names]]
            if title
            else [step_name(steps[0]), ": removed none"]
        ],
        bar([(max(100 * left / whole, _LEAST) if left else 0, "bar-allocated")], "", kind="thin"),
        h.span(".funnel-count.num.muted")[number(left)],
        h.span(".funnel-cut.num")[""],
    ]

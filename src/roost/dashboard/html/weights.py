"""The weights of the best hosts: stacked bars of the weighers' shares, and their numbers as a table."""

from collections.abc import Sequence

import htpy as h

from roost.dashboard.html.bars import bar, swatch
from roost.dashboard.html.places import host_link
from roost.dashboard.views.decision import HostShares, WeigherShare

_COLOURS = {
    "RAMWeigher": 1,
    "CPUWeigher": 2,
    "DiskWeigher": 3,
    "ServerGroupSoftAntiAffinityWeigher": 4,
    "ServerGroupSoftAffinityWeigher": 4,
    "IoOpsWeigher": 5,
    "PCIWeigher": 6,
    "BuildFailureWeigher": 7,
}
"""The colour of a weigher is the same on each page; the others have the last one."""

_OTHERS = 8


def weights(shares: Sequence[HostShares]) -> h.Node:
    """Return the weights of hosts. Each bar begins at zero: what lowers a weight lies left of it."""
    low = min((_below(each) for each in shares), default=0.0)
    high = max((_above(each) for each in shares), default=0.0)
    span = (high - low) or 1.0
    weighers = tuple(dict.fromkeys(one.weigher for each in shares for one in each.shares if one.share))
    if not weighers:
        return h.p(".muted")["All hosts were rated equally: the choice among them was drawn."]
    return [
        h.ol(".stack", role="list")[[_bar(each, low, span) for each in shares]],
        h.ul(".legend")[[h.li[swatch(colour_of(each), 12), each] for each in weighers]],
        h.details[h.summary["The numbers"], _table(shares)],
    ]


def colour_of(weigher: str) -> str:
    """Return the class of a weigher's colour."""
    return f"cat-{_COLOURS.get(weigher, _OTHERS)}"


def _bar(each: HostShares, low: float, span: float) -> h.Element:
    below = [one for one in each.shares if one.share < 0]
    above = [one for one in each.shares if one.share > 0]
    parts = [(100 * (_below(each) - low) / span, "bar-none")]
    parts += [(-100 * one.share / span, colour_of(one.weigher)) for one in reversed(below)]
    parts += [(100 * one.share / span, colour_of(one.weigher)) for one in above]
    return h.li[
        h.span(class_=["stack-name", each.chosen and "chosen"])[
            host_link(each.host.name, each.host.node), " ", each.chosen and h.span(".chip.state-ok")["chosen"]
        ],
        bar(parts, ""),
        h.span(".stack-total.num")[weight_text(each.weight)],
    ]


def weight_text(value: float) -> str:
    """Return a weight; a small part of one is not rounded away."""
    return f"{value:,.3f}" if abs(value) < 1000 else f"{value:,.0f}"


def _below(each: HostShares) -> float:
    return sum(one.share for one in each.shares if one.share < 0)


def _above(each: HostShares) -> float:
    return sum(one.share for one in each.shares if one.share > 0)


def _share(one: WeigherShare) -> list[h.Node]:
    return [weight_text(one.share), h.span(".muted")[f" ({one.raw:,.6g} → {one.normalised:.3f})"]]


def _table(shares: Sequence[HostShares]) -> h.Element:
    told = [{(one.weigher, one.multiplier): one for one in each.shares} for each in shares]
    keys = tuple(dict.fromkeys(key for each in told for key in each))
    rows = []
    for key in keys:
        cells = []
        for each in told:
            one = each.get(key)
            cells.append(h.td(".num")[None if one is None else _share(one)])
        weigher, multiplier = key
        rows.append(h.tr[h.th(scope="row")[weigher, h.span(".muted")[f" × {multiplier:g}"]], cells])
    total = h.tr[
        h.th(scope="row")["Weight"], [h.td(".num")[h.strong[weight_text(each.weight)]] for each in shares]
    ]
    return h.div(".table-wrap", tabindex="0", role="region", aria_label="Numbers of the weighers")[
        h.table(".table")[
            h.thead[
                h.tr[
                    h.th(scope="col")["Weigher × multiplier"],
                    [h.th(".num", scope="col")[h.bdi[each.host.name]] for each in shares],
                ]
            ],
            h.tbody[rows, total],
        ]
    ]

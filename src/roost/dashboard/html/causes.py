"""Refusals: what was asked for and what there is as bars, near misses, changes and moves that work."""

from collections.abc import Sequence

import htpy as h

from roost.dashboard.html.bars import bar
from roost.dashboard.html.places import host_link, instance_link
from roost.dashboard.html.values import amount, number
from roost.dashboard.views.decision import MissedHost, MovedInstance, WayOut, WorkingCause


def causes(found: Sequence[WorkingCause], hosts: int) -> h.Node:
    """Return what was asked for and what there is, of each cause. ``hosts``: the number of all hosts."""
    if not found:
        return None
    return h.div(class_=["causes", len(found) > 1 and "both"])[[_cause(each, hosts) for each in found]]


def _cause(each: WorkingCause, hosts: int) -> h.Node:
    cause = each.cause
    if cause.wanted is not None and cause.resource_class is not None:
        name, free = cause.resource_class, cause.free or 0
        whole = max(cause.wanted, free, 1)
        return h.dl(".scarce")[
            _line("Asked for", cause.wanted / whole, "bar-used", _amount(name, cause.wanted)),
            _line(["Most free on one host", _where(each)], free / whole, "bar-fails", _amount(name, free)),
        ]
    met = 0 if cause.met is None else cause.met
    return h.dl(".scarce")[
        h.div[h.dt["Asked for hosts that"], h.dd(".scarce-words")[h.strong[h.bdi[cause.text]]]],
        _line(
            "Hosts that do",
            met / max(hosts, 1),
            "bar-fails",
            [h.strong[number(met) if cause.met is not None else "?"], f" of {number(hosts)}"],
        ),
    ]


def _line(title: h.Node, share: float, kind: str, words: h.Node) -> h.Element:
    return h.div[h.dt[title], h.dd(".num")[words], h.dd[bar([(100 * share, kind)], "", kind="thick")]]


def _amount(name: str, units: int) -> h.Node:
    """Return an amount with its class; the unit of memory and disk is in the amount."""
    shown = {"MEMORY_MB": "memory", "DISK_GB": "disk"}.get(name, name)
    return h.strong[amount(name, units)], " ", h.bdi[shown]


def _where(each: WorkingCause) -> h.Node:
    if each.cause.host is None or not each.cause.free:
        return None
    return [" (", host_link(each.cause.host, each.node), ")"]


def near_misses(misses: Sequence[MissedHost]) -> h.Node:
    """Return the hosts that only one condition keeps from the request."""
    if not misses:
        return None
    return h.section(".card.flush", aria_labelledby="misses")[
        h.div(".section-head")[
            h.h2("#misses")["Nearly"], h.span(".muted")["hosts that lack one thing alone"]
        ],
        h.ul(".attention")[
            [
                h.li[h.span[host_link(each.miss.host, each.node), " ", h.bdi[each.miss.text]]]
                for each in misses
            ]
        ],
    ]


def ways_out(ways: Sequence[WayOut], *, hosts: bool = True) -> h.Node:
    """Return the changes that work, each with the way to ask again. ``hosts``: these may be seen."""
    if not ways:
        return None
    both = any(each.relaxation.kind == "pair" for each in ways)
    return h.div(".ways-out")[
        h.h3["It would fit with two changes at once" if both else "It would fit with one change"],
        h.ul(".ways")[[_way(each, hosts) for each in ways]],
    ]


def moves_to_make(moves: Sequence[MovedInstance]) -> h.Node:
    """Return the moves that make room, in their order."""
    if not moves:
        return None
    number_of = "one instance" if len(moves) == 1 else f"{len(moves)} instances, one after the other"
    return h.div(".ways-out")[
        h.h3[f"It would fit after moving {number_of}"],
        h.ol(".ways")[[_moved(each) for each in moves]],
    ]


def _moved(moved: MovedInstance) -> h.Element:
    move = moved.move
    return h.li[
        h.span[instance_link(move.instance), " from ", host_link(move.source, moved.source)],
        h.span["to ", host_link(move.target, moved.target)],
        h.span(".muted")[h.bdi[move.flavor], " of project ", h.bdi[move.project_id]],
    ]


def _way(way: WayOut, hosts: bool) -> h.Element:
    relaxation = way.relaxation
    return h.li[
        h.span(".state-ok")[h.bdi[relaxation.text]],
        h.span(".muted")["on ", host_link(relaxation.host, way.node)] if hosts and relaxation.host else None,
        h.a(".button.small", href=way.address)["Ask again with this"] if way.address else None,
    ]

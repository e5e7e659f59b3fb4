"""A decision as HTML: its story, or why it was refused."""

from collections.abc import Mapping
from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.addresses import DECISIONS
from roost.dashboard.html.bars import bar
from roost.dashboard.html.funnel import funnel
from roost.dashboard.html.lists import cell, table
from roost.dashboard.html.places import cell_link, host_link, instance_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.states import attempt_state, decision_state, state_mark
from roost.dashboard.html.times import duration
from roost.dashboard.html.values import amount, moment, number
from roost.dashboard.html.weights import weights
from roost.dashboard.page import Page
from roost.dashboard.views.decision import (
    DecisionQuery,
    DecisionView,
    MissedHost,
    PlacedInstance,
    RefusalView,
    WayOut,
    decision_view,
)
from roost.dashboard.views.outcome import RecordedHost
from roost.scheduler.api.operations import RECORDS

_MOST_INSTANCES = 20
"""Instances that are shown at first; the others unfold."""


def title_of(view: DecisionView) -> str:
    """Return the title of a decision: what became of what."""
    flavor = view.spec.get("flavor")
    name = flavor.get("name", "") if isinstance(flavor, dict) else ""
    number_of = f"{number(len(view.instances))} × " if len(view.instances) != 1 else ""
    return f"{decision_state(view.outcome).words}: {number_of}{name}"


def _decision(view: DecisionView, viewing: Viewing) -> h.Node:
    return [
        page_head(
            title_of(view),
            [
                h.bdi(".mono")[view.request_id],
                " · project ",
                h.bdi[view.project_id],
                " · ",
                moment(view.at),
                f" UTC · decided in {1000 * view.seconds:,.1f} ms",
                f" on commit {number(view.version)}" if view.version is not None else None,
            ],
            crumbs=(("Decisions", DECISIONS),),
            actions=_actions(view, viewing),
        ),
        _as_project(view, viewing),
        _refusal(view.refusal) if view.refusal else None,
        _story(view),
        _instances(view),
        h.div(".grid.two")[_asked(view), _warnings(view)],
    ]


def _actions(view: DecisionView, viewing: Viewing) -> h.Node:
    if not viewing.operator or view.of_project:
        return None
    address = addresses.with_query(addresses.decision(view.run), **{"as": "project"})
    return h.a(".button", href=address)["What the user sees"]


def _as_project(view: DecisionView, viewing: Viewing) -> h.Node:
    if not (view.of_project and viewing.operator):
        return None
    return h.div(".notice.state-note")[
        h.p["This is the decision as users of project ", h.bdi[view.project_id], " see it."],
        h.a(href=addresses.decision(view.run))["See all of it"],
    ]


def _refusal(refusal: RefusalView) -> h.Node:
    return h.section(".card.refusal", aria_labelledby="why")[
        h.h2("#why.state-fails")["Why it was refused"],
        h.p(".refusal-sentence")[h.bdi[refusal.sentence[:1].upper() + refusal.sentence[1:]]],
        _scarce(refusal.misses),
        _ways(refusal.ways),
        None
        if refusal.complete
        else h.p(".muted")["The time was over before all changes were tried: there may be more."],
    ]


def _scarce(misses: tuple[MissedHost, ...]) -> h.Node:
    """Return asked and available amounts of the nearest miss, as two bars on one scale."""
    miss = next((each.miss for each in misses if each.miss.wanted), None)
    if miss is None or miss.resource_class is None or miss.wanted is None:
        return None
    name, free = miss.resource_class, miss.free or 0
    whole = max(miss.wanted, free)
    return h.dl(".scarce")[
        h.dt["Asked for"],
        h.dd[bar([(100 * miss.wanted / whole, "bar-used")], "", kind="thick")],
        h.dd(".num")[h.strong[amount(name, miss.wanted)], " ", name],
        h.dt["The most that is free"],
        h.dd[bar([(100 * free / whole, "bar-fails")], "", kind="thick")],
        h.dd(".num")[h.strong[amount(name, free)], " ", name],
    ]


def _ways(ways: tuple[WayOut, ...]) -> h.Node:
    if not ways:
        return None
    both = any(each.relaxation.kind == "pair" for each in ways)
    return [
        h.h3["It would fit with two changes at once" if both else "It would fit with one change"],
        h.ul(".ways")[[_way(each) for each in ways]],
    ]


def _way(way: WayOut) -> h.Element:
    relaxation = way.relaxation
    return h.li[
        h.span(".state-ok")[h.bdi[relaxation.text]],
        relaxation.host and h.span(".muted")[" on ", host_link(relaxation.host, way.node)],
    ]


def _story(view: DecisionView) -> h.Node:
    parts: list[h.Node] = []
    if view.funnel:
        parts.append(
            h.section(".card", aria_labelledby="funnel")[
                h.h2("#funnel")["From all hosts to one" if view.shares else "From all hosts to none"],
                funnel(view.funnel),
            ]
        )
    if view.shares:
        parts.append(
            h.section(".card", aria_labelledby="weights")[
                h.h2("#weights")["The best hosts"],
                weights(view.shares),
            ]
        )
    if view.refusal and view.refusal.misses:
        parts.append(_misses(view.refusal.misses))
    return h.div(".grid.two")[parts] if len(parts) > 1 else parts


def _misses(misses: tuple[MissedHost, ...]) -> h.Node:
    return h.section(".card.flush", aria_labelledby="misses")[
        h.div(".section-head")[h.h2("#misses")["Nearly"], h.span(".muted")["only one thing is missing"]],
        h.ul(".attention")[
            [
                h.li[h.span[host_link(each.miss.host, each.node), " ", h.bdi[each.miss.text]]]
                for each in misses
            ]
        ],
    ]


def _instances(view: DecisionView) -> h.Node:
    shown = view.instances
    if not any(each.attempts or each.alternates for each in shown):
        return None
    first, rest = shown[:_MOST_INSTANCES], shown[_MOST_INSTANCES:]
    return h.section(".card.flush", aria_labelledby="attempts")[
        h.div(".section-head")[h.h2("#attempts")["Attempts and builds"]],
        _attempts(first, view),
        h.details(".card-part")[h.summary[f"{number(len(rest))} more instances"], _attempts(rest, view)]
        if rest
        else None,
    ]


def _attempts(instances: tuple[PlacedInstance, ...], view: DecisionView) -> h.Element:
    seen = not view.of_project
    heads: list[h.Node] = ["Instance", *(["Host", "Cell"] if seen else []), "Result", "Began (UTC)"]
    heads += [h.th(".num", scope="col")["Took"], *(["Reason, alternates"] if seen else [])]
    return table("Attempts", heads, [row for each in instances for row in _rows(each, seen)])


def _rows(placed: PlacedInstance, seen: bool) -> list[h.Element]:
    link = instance_link(placed.instance)
    if not placed.attempts:
        return [
            h.tr[
                h.th(scope="row")[link],
                [cell("Host", "–"), cell("Cell", "–")] if seen else None,
                cell("Result", "No attempt"),
                cell("Began", "–"),
                cell("Took", "–", numeric=True),
                cell("Alternates", _alternates(placed.alternates)) if seen else None,
            ]
        ]
    rows = []
    for position, each in enumerate(placed.attempts):
        last = position == len(placed.attempts) - 1
        end = each.finished_at
        rows.append(
            h.tr[
                h.th(scope="row")[link if not position else h.span(".muted")[f"attempt {position + 1}"]],
                [
                    cell("Host", host_link(each.host, each.node or None)),
                    cell("Cell", cell_link(each.cell)),
                ]
                if seen
                else None,
                cell("Result", state_mark(attempt_state(each.result))),
                cell("Began", moment(each.at)),
                cell("Took", "–" if end is None else duration(end - each.at), numeric=True),
                cell(
                    "Reason, alternates",
                    h.bdi[each.reason] if each.reason else None,
                    _alternates(placed.alternates) if last else None,
                )
                if seen
                else None,
            ]
        )
    return rows


def _alternates(alternates: tuple[RecordedHost, ...]) -> h.Node:
    if not alternates:
        return None
    links = [
        [", " if position else "", host_link(each.name, each.node)]
        for position, each in enumerate(alternates)
    ]
    return h.span(".muted")["alternates: ", links]


def _asked(view: DecisionView) -> h.Node:
    facts: list[tuple[str, h.Node]] = [
        ("Request", h.bdi(".mono")[view.request_id]),
        *([("Of the client", h.bdi(".mono")[view.global_request_id])] if view.global_request_id else []),
        ("Project, user", [h.bdi[view.project_id], ", ", h.bdi[view.user_id]]),
    ]
    for name, value in view.spec.items():
        if name not in ("project_id", "user_id") and value not in (None, False, 0, "", [], {}):
            facts.append((_WORDS.get(name, name.replace("_", " ").capitalize()), _value(value)))
    return h.section(".card", aria_labelledby="asked")[
        h.h2("#asked")["What was asked for"],
        h.dl(".facts")[[(h.dt[name], h.dd[value]) for name, value in facts]],
        h.p(".muted")["Of placement: ", h.bdi["; ".join(view.refusal.asked)]]
        if view.refusal and view.refusal.asked
        else None,
    ]


_WORDS = {"flavor": "Flavor", "availability_zone": "Zone", "scheduler_hints": "Hints"}


def _value(value: object) -> h.Node:
    if isinstance(value, Mapping):
        parts = [(name, each) for name, each in value.items() if each not in (None, False, 0, "", [], {})]
        return h.ul[[h.li[h.span(".muted")[h.bdi[str(name)], " "], _value(each)] for name, each in parts]]
    if isinstance(value, list | tuple):
        return [[", " if position else "", _value(each)] for position, each in enumerate(value)]
    return h.bdi[str(value)]


def _warnings(view: DecisionView) -> h.Node:
    if not view.warnings:
        return None
    return h.section(".card", aria_labelledby="warnings")[
        h.h2("#warnings.state-look")["Keys without effect"],
        h.ul(".bullets")[[h.li[h.bdi[each.text]] for each in view.warnings]],
    ]


DECISION_PAGE: Final = Page(
    f"{DECISIONS}/{{run}}",
    RECORDS,
    decision_view,
    _decision,
    title_of,
    here=DECISIONS,
    query=DecisionQuery,
)

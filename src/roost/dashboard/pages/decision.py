"""A decision as HTML: its story, or why it was refused."""

from collections.abc import Iterator, Mapping
from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.addresses import DECISIONS
from roost.dashboard.html.causes import causes, moves_to_make, near_misses, ways_out
from roost.dashboard.html.funnel import funnel
from roost.dashboard.html.lists import cell, table
from roost.dashboard.html.places import cell_link, host_link, instance_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.states import attempt_state, decision_state, state_mark
from roost.dashboard.html.times import duration
from roost.dashboard.html.values import amount, counted, moment, number, sentence
from roost.dashboard.html.weights import weights
from roost.dashboard.page import Page
from roost.dashboard.views.decision import (
    DecisionQuery,
    DecisionView,
    PlacedInstance,
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
                " UTC",
                _decided(view),
            ],
            crumbs=(("Decisions", DECISIONS),),
            actions=_actions(view, viewing),
        ),
        _as_project(view, viewing),
        _refusal(view, viewing),
        _story(view),
        _instances(view),
        _without(view, viewing),
        columns([_asked(view)], [_warnings(view)]),
    ]


def _decided(view: DecisionView) -> str | None:
    # A clock that was set back, or stands still, has measured nothing.
    took = f" in {1000 * view.seconds:,.1f} ms" if view.seconds > 0 else ""
    on = f" on commit {number(view.version)}" if view.version is not None else ""
    return f" · decided{took}{on}" if took or on else None


def _actions(view: DecisionView, viewing: Viewing) -> h.Node:
    if not viewing.operator or view.of_project:
        return None
    address = addresses.with_query(addresses.decision(view.run), **{"as": "project"})
    return [
        h.a(".button", href=addresses.with_query(addresses.WHAT_IF, run=view.run))["How many fit now"],
        h.a(".button", href=address)["What the user sees"],
    ]


def _as_project(view: DecisionView, viewing: Viewing) -> h.Node:
    if not (view.of_project and viewing.operator):
        return None
    return h.div(".notice.state-note")[
        h.p["This is the decision as users of project ", h.bdi[view.project_id], " see it."],
        h.a(href=addresses.decision(view.run))["See all of it"],
    ]


def _refusal(view: DecisionView, viewing: Viewing) -> h.Node:
    refusal = view.refusal
    if refusal is None:
        return None
    return h.section(".card.refusal", aria_labelledby="why")[
        h.h2("#why.state-fails")["Why it was refused" if not refusal.placed else "Why not all were placed"],
        h.p(".sentence")[h.bdi[sentence(refusal.sentence)]],
        causes(refusal.causes, refusal.hosts),
        ways_out(refusal.ways),
        moves_to_make(refusal.moves),
        None
        if refusal.complete
        else h.p(".muted")["The time was over before all changes were tried: there may be more."],
    ]


def _story(view: DecisionView) -> h.Node:
    """The funnel and the weights or near misses beside it; of a refusal what was asked for as well."""
    funnel_card = (
        view.funnel
        and h.section(".card", aria_labelledby="funnel")[
            h.h2("#funnel")[_to(view)],
            funnel(view.funnel),
        ]
    )
    shares = (
        view.shares
        and h.section(".card", aria_labelledby="weights")[
            h.h2("#weights")["The best hosts"],
            len(view.instances) > 1
            and h.p(".muted")[
                f"The first host is that of the first of {number(len(view.instances))} instances; "
                "its alternates were weighed after all were placed."
            ],
            weights(view.shares),
        ]
    )
    misses = near_misses(view.refusal.misses) if view.refusal else None
    return columns([funnel_card or None], [shares or None, misses])


def _to(view: DecisionView) -> str:
    """Return where the funnel leads to."""
    if not view.shares:
        return "From all hosts to none"
    return "From all hosts to one" if len(view.instances) == 1 else "From all hosts to the chosen ones"


def columns(first: list[h.Node], second: list[h.Node]) -> h.Node:
    """Return cards in two columns, or in one if one of them has none."""
    filled = [[card for card in column if card] for column in (first, second)]
    if not all(filled):
        return [card for column in filled for card in column]
    return h.div(".grid.two")[[h.div(".grid")[column] for column in filled]]


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


def _without(view: DecisionView, viewing: Viewing) -> h.Node:
    """The place of the counterfactuals, which take a while: they are asked for."""
    if view.of_project or not viewing.operator or view.version is None:
        return None
    address = addresses.redecision(view.run)
    asking = (
        {
            "hx_nonce": viewing.nonce,
            "hx_get": address,
            "hx_select": "#without",
            "hx_target": "#without",
            "hx_swap": "outerHTML",
        }
        if viewing.nonce
        else {}
    )
    return h.section("#without.card", aria_labelledby="without-head", aria_live="polite")[
        h.div(".section-head")[
            h.h2("#without-head")["Without one condition"],
            h.span[
                h.span(".htmx-indicator.muted")["Deciding again… "],
                h.a(".button", href=address, **asking)["Decide again without each"],
            ],
        ],
        h.p(".muted")[
            "The host that would have won without a weigher, and the hosts that would be there without a "
            "filter or a trait: found by really deciding again, on the state of that moment."
        ],
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
                cell("Took", "–" if end is None or end <= each.at else duration(end - each.at), numeric=True),
                cell(
                    "Reason, alternates",
                    h.span[h.bdi[each.reason]] if each.reason else None,
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
    for field, value in view.spec.items():
        if field == "flavor" and isinstance(value, Mapping):
            facts += _flavor(value)
        elif field not in ("project_id", "user_id") and value not in _NOTHING:
            facts.append((_WORDS.get(field, field.replace("_", " ").capitalize()), _value(value)))
    if view.refusal and view.refusal.asked:
        facts.append(("Of placement", [h.div[h.bdi(".mono")[each]] for each in view.refusal.asked]))
    return h.section(".card", aria_labelledby="asked")[
        h.h2("#asked")["What was asked for"],
        h.dl(".facts")[[(h.dt[name], h.dd[value]) for name, value in facts]],
    ]


_NOTHING: Final[tuple[object, ...]] = (None, False, 0, "", [], {})
_WORDS = {"availability_zone": "Zone", "scheduler_hints": "Hints"}
_SIZES = (
    ("memory_mb", "MEMORY_MB", "memory"),
    ("disk_gb", "DISK_GB", "disk"),
    ("ephemeral_gb", "DISK_GB", "ephemeral disk"),
    ("swap_mb", "MEMORY_MB", "swap"),
)


def _flavor(flavor: Mapping[str, object]) -> Iterator[tuple[str, h.Node]]:
    vcpus = flavor.get("vcpus")
    sizes = [counted(vcpus, "vCPU")] if isinstance(vcpus, int) else []
    sizes += [
        f"{amount(unit, size)} {words}"
        for field, unit, words in _SIZES
        if isinstance(size := flavor.get(field), int) and size
    ]
    yield "Flavor", [h.bdi[str(flavor.get("name"))], ": ", h.bdi[", ".join(sizes)]]
    extra_specs = flavor.get("extra_specs")
    if isinstance(extra_specs, Mapping) and extra_specs:
        yield "Extra specs", [h.div[h.bdi(".mono")[f"{key}={value}"]] for key, value in extra_specs.items()]


def _value(value: object) -> h.Node:
    if isinstance(value, Mapping):
        parts = [(name, each) for name, each in value.items() if each not in _NOTHING]
        return [h.div[h.span(".muted")[h.bdi[str(name)], " "], _value(each)] for name, each in parts]
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

"""The overview as HTML."""

from collections.abc import Sequence
from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.html.bars import swatch, use_bar, use_share
from roost.dashboard.html.live import live_region
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.values import amount, number, percent
from roost.dashboard.html.values import name as shown_name
from roost.dashboard.page import Page, TimedQuery
from roost.dashboard.pages.series import CHART_FILES, series_figure
from roost.dashboard.service import FLEET_RULE
from roost.dashboard.views.attention import Attention
from roost.dashboard.views.overview import (
    MAIN_CLASSES,
    ClassCapacity,
    OverviewView,
    PlaceCapacity,
)
from roost.dashboard.views.overview_past import overview_shown
from roost.web.policy import Rule

MOST_FINDINGS = 8
"""Findings that are shown at first; the others unfold."""

MOST_PLACES = 12
"""Zones or cells that are shown at first; the others unfold."""


def _overview(view: OverviewView, viewing: Viewing) -> h.Node:
    if view.past:
        return _past(view, viewing.at)
    worst = view.attention[0].level if view.attention else "ok"
    lead = {
        "fails": "Something fails now.",
        "look": "Somebody should look.",
        "note": "Nothing is wrong; notes are below.",
        "ok": "Nothing is wrong.",
    }[worst]
    return [
        live_region(
            viewing,
            "overview",
            page_head("Overview", h.span(class_=f"state-{worst}")[lead]),
            _figures(view, None),
            h.div(".grid.side")[_attention(view), _decisions(view)],
            _capacity(view, None),
            h.div(".grid.two")[
                _places("Zones", "zone", view.zones, None),
                _places("Cells", "cell", view.cells, None),
            ],
        ),
        _over_time(view),
    ]


def _over_time(view: OverviewView) -> h.Node:
    """Charts, which fetch their numbers after the page."""
    classes = [each.resource_class for each in view.classes][:2]
    return h.section(aria_labelledby="over-time")[
        h.div(".section-head")[
            h.h2("#over-time")["The last day"], h.span(".muted")["A click shows that time"]
        ],
        h.div(".grid.two")[
            [series_figure("use", f"{each} in use", resource_class=each) for each in classes],
            series_figure("claims", "Claims a minute", small=True) if classes else None,
            series_figure("decisions", "Decisions a minute", small=True),
            series_figure("hosts", "Hosts", small=True),
            series_figure("instances", "Instances", small=True) if view.instances is not None else None,
        ],
    ]


def _past(view: OverviewView, at: str | None) -> h.Node:
    """The overview as of an earlier time: what was in use. The rest is not kept, or has pages of its own."""
    return h.div(".region")[
        page_head("Overview", "Capacity and use as of this moment, by the places that hosts have now."),
        _figures(view, at),
        _capacity(view, at),
        h.div(".grid.two")[
            _places("Zones", "zone", view.zones, at), _places("Cells", "cell", view.cells, at)
        ],
        h.p(".muted")[
            "What needed attention then is not kept. "
            if view.up is not None
            else "What needed attention and the states of hosts then are not kept. ",
            h.a(href=addresses.with_query(addresses.DECISIONS, until=f"{view.at:.0f}"))[
                "Decisions until then"
            ],
            " are in the records.",
        ],
    ]


def _figures(view: OverviewView, at: str | None) -> h.Node:
    by_name = {each.resource_class: each for each in view.classes}
    figures: list[h.Node] = [_hosts(view, at)]
    for name, title in (("VCPU", "VCPU used"), ("MEMORY_MB", "Memory used")):
        if name in by_name:
            figures.append(_class_figure(title, by_name[name], at))
    if view.instances is not None:
        active = view.instances.get("active", 0)
        others = ", ".join(f"{number(n)} {state}" for state, n in view.instances.items() if state != "active")
        figures.append(
            _figure("Instances active", addresses.INSTANCES, number(active), "", others or "no others")
        )
    if view.runs is not None:
        seconds = "" if not view.runs.slow else f"95 % within {max(1.0, 1000 * view.runs.slow):,.0f} ms"
        figures.append(
            _figure(
                "Decisions",
                addresses.DECISIONS,
                *_rate(view.runs.runs, view.minutes),
                f"{number(sum(view.runs.refused.values()))} refused in {view.minutes} min"
                + (f", {seconds}" if seconds else ""),
            )
        )
    return h.dl(".kpis")[figures]


def _rate(count: int, minutes: int) -> tuple[str, str]:
    """Return how many there were a second, or a minute if they were few, and the unit."""
    if count >= 60 * minutes:
        return f"{count / minutes / 60:,.1f}", "/s"
    return f"{count / minutes:,.1f}", "/min"


def _hosts(view: OverviewView, at: str | None) -> h.Node:
    hosts = addresses.with_query(addresses.HOSTS, at=at)
    if view.up is None or view.disabled is None:
        return _figure("Hosts", hosts, number(view.hosts), "", "of those that are there now")
    return _figure(
        "Hosts up",
        hosts,
        number(view.up),
        f"of {number(view.hosts)}",
        f"{number(view.hosts - view.up - view.disabled)} down, {number(view.disabled)} disabled",
        use_bar(view.up, view.hosts, ""),
    )


def _class_figure(title: str, each: ClassCapacity, at: str | None) -> h.Node:
    name = each.resource_class
    note = f"{amount(name, each.used)} of {amount(name, each.capacity)}"
    return _figure(
        title,
        addresses.with_query(addresses.MAP, **{"class": name}, at=at),
        percent(each.used, each.capacity),
        "",
        note,
        use_bar(each.used, each.capacity, "", reserved=0),
    )


def _figure(label: str, href: str, value: str, unit: str, note: str, picture: h.Node = None) -> h.Element:
    return h.div(".kpi")[
        h.dt(".kpi-label")[label],
        h.dd(".kpi-value.num")[h.a(href=href)[value], unit and (" ", h.span(".unit")[unit])],
        h.dd(".kpi-note")[note, picture],
    ]


def _attention(view: OverviewView) -> h.Node:
    found = view.attention
    if not found:
        list_: h.Node = h.p(".empty")["Nothing needs attention."]
    else:
        list_ = h.ul(".attention")[[_finding(each) for each in found[:MOST_FINDINGS]]]
    rest = found[MOST_FINDINGS:]
    return h.section(".card.flush", aria_labelledby="attention")[
        h.div(".section-head")[h.h2("#attention")["Needs attention"]],
        list_,
        h.details(".card-part")[
            h.summary[f"{number(len(rest))} more"], h.ul(".attention")[[_finding(each) for each in rest]]
        ]
        if rest
        else None,
        [
            h.p(".card-part.state-look")[f"{part.capitalize()} cannot be read: {why}"]
            for part, why in view.unknown.items()
        ],
    ]


def _finding(each: Attention) -> h.Node:
    words: h.Node = [h.strong[h.bdi[each.about]], ": ", h.bdi[each.says]]
    return h.li(class_=f"state-{each.level}")[h.a(href=each.href)[words] if each.href else h.span[words]]


def _decisions(view: OverviewView) -> h.Node:
    if view.runs is None:
        content: h.Node = h.p(".muted")["Decisions are not counted here."]
    elif not view.runs.refused:
        content = h.p(".muted")[f"No request was refused in {view.minutes} minutes."]
    else:
        causes = sorted(view.runs.refused.items(), key=lambda each: (-each[1], each[0]))[:5]
        content = h.ol(".causes")[
            [
                h.li[
                    h.strong(".num")[f"{number(count)} × "],
                    h.a(href=addresses.with_query(addresses.DECISIONS, refused="true"))[h.bdi[reason]],
                ]
                for reason, count in causes
            ]
        ]
    return h.section(".card", aria_labelledby="refusals")[
        h.div(".section-head")[
            h.h2("#refusals")[f"Refusals in {view.minutes} minutes"],
            h.a(href=addresses.with_query(addresses.DECISIONS, refused="true"))["All"],
        ],
        content,
    ]


def _capacity(view: OverviewView, at: str | None) -> h.Node:
    if view.version is None:
        return h.section(".card.empty")[
            h.h2["No fleet here"],
            h.p["Placement is reached over HTTP. Pages of the fleet need a ledger: [placement_database]."],
        ]
    return h.section(".card.flush", aria_labelledby="capacity")[
        h.div(".section-head")[h.h2("#capacity")["Capacity and use"], _legend()],
        h.div(".table-wrap", tabindex="0", role="group", aria_label="Capacity and use")[
            h.table(".table.stacks")[
                h.thead[
                    h.tr[
                        h.th(scope="col")["Class"],
                        h.th(scope="col")["Use"],
                        [
                            h.th(".num", scope="col")[each]
                            for each in ("Used", "Capacity", "Reserved", "Total")
                        ],
                        h.th(".num", scope="col")["Providers"],
                    ]
                ],
                h.tbody[[_class_row(each, at) for each in view.classes]],
            ]
        ],
    ]


def _class_row(each: ClassCapacity, at: str | None) -> h.Node:
    name = each.resource_class
    share = percent(each.used, each.capacity)
    amounts = (
        ("Used", each.used),
        ("Capacity", each.capacity),
        ("Reserved", each.reserved),
        ("Total", each.total),
    )
    return h.tr[
        h.th(scope="row")[h.a(href=addresses.with_query(addresses.MAP, **{"class": name}, at=at))[name]],
        h.td(data_label="Use")[
            h.span(".bar-line")[
                use_bar(each.used, each.capacity, f"{share} of the capacity used"), h.span(".num")[share]
            ]
        ],
        [h.td(".num", data_label=label)[amount(name, value)] for label, value in amounts],
        h.td(".num", data_label="Providers")[number(each.providers)],
    ]


def _legend() -> h.Node:
    parts = (("bar-used", "used"), ("bar-total", "free"))
    return h.ul(".legend")[[h.li[swatch(kind), text] for kind, text in parts]]


def _places(title: str, kind: str, places: Sequence[PlaceCapacity], at: str | None) -> h.Node:
    if not places:
        return None
    names = [name for name in MAIN_CLASSES if any(name in each.classes for each in places)][:3]
    first, rest = places[:MOST_PLACES], places[MOST_PLACES:]
    return h.section(".card.flush", aria_label=title)[
        h.div(".section-head")[h.h2[title], h.span(".muted")[number(len(places))]],
        h.div(".table-wrap", tabindex="0", role="group", aria_label=title)[
            h.table(".table.stacks")[
                h.thead[
                    h.tr[
                        h.th(scope="col")[title[:-1]],
                        h.th(".num", scope="col")["Hosts up"],
                        [h.th(scope="col")[name] for name in names],
                    ]
                ],
                h.tbody[[_place_row(each, kind, names, at) for each in first]],
            ]
        ],
        h.p(".card-part")[
            h.a(href=addresses.with_query(addresses.MAP, at=at))[
                f"{number(len(rest))} more {title.lower()} are on the map"
            ]
        ]
        if rest
        else None,
    ]


def _place_row(each: PlaceCapacity, kind: str, names: Sequence[str], at: str | None) -> h.Node:
    return h.tr[
        h.th(scope="row")[
            h.a(href=addresses.with_query(addresses.MAP, **{kind: each.name}, at=at))[shown_name(each.name)]
        ],
        h.td(".num", data_label="Hosts up")[
            number(each.hosts) if each.up is None else f"{number(each.up)} of {number(each.hosts)}"
        ],
        [h.td(data_label=name)[use_share(name, *each.classes.get(name, (0, 0)))] for name in names],
    ]


OVERVIEW: Final = Page(
    addresses.ROOT,
    Rule(FLEET_RULE),
    overview_shown,
    _overview,
    lambda _: "Overview",
    here=addresses.ROOT,
    kept_seconds=1.0,
    query=TimedQuery,
    files=CHART_FILES,
)

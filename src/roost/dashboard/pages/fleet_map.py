"""The map of the fleet as HTML: the summary, the picture, and the table of groups."""

from typing import Final

import htpy as h
import msgspec

from roost.dashboard import addresses
from roost.dashboard.fleet.criteria import NOWHERE
from roost.dashboard.fleet.groups import GroupedBy, GroupSort, HostGroupRow
from roost.dashboard.fleet.levels import SHOWN
from roost.dashboard.fleet.map_query import MapQuery
from roost.dashboard.html.bars import use_bar
from roost.dashboard.html.lists import (
    Order,
    cell,
    choice_field,
    empty,
    head,
    numbered_pager,
    sorted_head,
    suggested_field,
    table,
)
from roost.dashboard.html.live import live_region
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.values import amount, name, number, percent
from roost.dashboard.page import Page
from roost.dashboard.pages.hosts import NO_HOST, cell_choices
from roost.dashboard.service import FLEET_RULE
from roost.dashboard.views.fleet_map import GROUPS_ON_A_PAGE, FleetMapView, fleet_map_view
from roost.web.policy import Rule

_GROUPED: Final[dict[GroupedBy, str]] = {
    "rack": "Rack",
    "zone": "Zone",
    "cell": "Cell",
    "place": "Rack and cell",
}

_LAYOUT_PAUSE: Final = 5_000
"""Milliseconds between two fetches of the table of groups at least."""


def _fleet_map(view: FleetMapView, viewing: Viewing) -> h.Node:
    return [
        page_head("Fleet map", _sentence(view)),
        live_region(viewing, "map-summary", _summary(view)),
        view.misfit and h.div(".notice.state-look")[h.p[h.bdi[view.misfit]]],
        _picture(view) if view.all_hosts else h.section(".card")[empty(*NO_HOST)],
        live_region(viewing, "map-groups", _groups(view), pause=_LAYOUT_PAUSE),
    ]


def _sentence(view: FleetMapView) -> h.Node:
    """Return the answer to the question that a map is opened for: where it is fullest."""
    if view.fullest is None:
        return None
    place, share = view.fullest, percent(view.fullest.used, view.fullest.capacity)
    where = ", ".join(
        text
        for text in (
            place.rack is not None and (f"rack {place.rack}" if place.rack else "hosts in no rack"),
            place.zone and f"zone {place.zone}",
            place.cell and f"cell {place.cell}",
        )
        if text
    )
    return [
        "Fullest of ",
        h.strong[view.resource_class],
        ": ",
        h.a(href=_hosts_of(view, place))[h.bdi[where]],
        f", {share} of {amount(view.resource_class, place.capacity)} used.",
    ]


def _summary(view: FleetMapView) -> h.Node:
    of_all = f" of {number(view.all_hosts)}" if view.criteria.any else ""
    figures = [
        h.div(".kpi")[
            h.dt(".kpi-label")["Hosts"],
            h.dd(".kpi-value")[
                h.a(href=_hosts(view))[number(view.hosts)], of_all and (" ", h.span(".unit")[of_all])
            ],
            h.dd(".kpi-note")[_states(view)],
        ]
    ]
    totals = view.totals
    if totals is None:
        figures.append(
            h.div(".kpi")[
                h.dt(".kpi-label")["Use"],
                h.dd(".kpi-note")["Placement is reached over HTTP, so that use is not known here."],
            ]
        )
        return h.dl(".kpis")[figures]
    each = view.resource_class
    share = percent(totals.used, totals.capacity)
    figures.append(
        h.div(".kpi")[
            h.dt(".kpi-label")[f"{each} used"],
            h.dd(".kpi-value")[share],
            h.dd(".kpi-note")[
                f"{amount(each, totals.used)} of {amount(each, totals.capacity)}",
                use_bar(totals.used, totals.capacity, ""),
            ],
        ]
    )
    free = max(0, totals.capacity - totals.used)
    for label, value, note in (
        ("Free", free, "may still be allocated"),
        ("Reserved", totals.reserved, "kept by the hosts for themselves"),
        ("Total", totals.total, _ratio(totals.capacity, totals.total - totals.reserved)),
    ):
        figures.append(
            h.div(".kpi")[
                h.dt(".kpi-label")[label],
                h.dd(".kpi-value")[amount(each, value)],
                h.dd(".kpi-note")[note],
            ]
        )
    return h.dl(".kpis")[figures]


def _ratio(capacity: int, usable: int) -> str:
    if usable <= 0 or capacity == usable:
        return "of the machines"
    return f"of the machines, allocated {capacity / usable:.3g} times"


def _states(view: FleetMapView) -> h.Node:
    if not view.states:
        return "states of then are not kept"
    marks = {"up": "ok", "disabled": "off", "down": "fails"}
    return [
        (
            " " if place else "",
            h.a(href=_hosts(view, state=state))[
                h.span(class_=f"state-{marks[state]}")[f"{number(count)} {state}"]
            ],
        )
        for place, (state, count) in enumerate(view.states.items())
        if count
    ]


def _picture(view: FleetMapView) -> h.Node:
    scale = msgspec.json.encode(view.scale).decode()
    return h.section(
        ".map",
        data_map=True,
        data_layout_url=addresses.MAP_LAYOUT,
        data_levels_url=addresses.with_query(addresses.MAP_LEVELS, at=view.past),
        data_host_url=addresses.with_query(addresses.MAP_HOST, at=view.past),
        data_find_url=addresses.MAP_FIND,
        data_scale=scale,
        data_selected=None if view.selected is None else f"{view.selected}",
        aria_label="Map",
    )[
        h.div(".map-bar")[_form(view), _search(), _zoom()],
        h.div(
            ".map-frame",
            tabindex="0",
            role="application",
            aria_label="Map of hosts. Arrows go from host to host, Page Up and Page Down from group to "
            "group, Enter opens a host. The table below has the same by group.",
        ),
        h.div(".map-foot")[h.div(".map-legend"), h.div(".map-card.card", role="status")],
        h.noscript[h.p(".notice")["The picture needs JavaScript; the table below has the same by group."]],
    ]


def _form(view: FleetMapView) -> h.Node:
    choices, criteria = view.choices, view.criteria
    shown = {"by": view.by, "class": view.resource_class, "at": view.past}
    everything = addresses.with_query(addresses.MAP, **shown)
    classes = [(each, each) for each in choices.classes]
    return h.form(".filter-form", action=addresses.MAP, data_map_form=True)[
        h.input(type="hidden", name="at", value=view.past) if view.past is not None else None,
        choice_field("by", "Colour", view.by, SHOWN.items(), every=None),
        choice_field("class", "Class", view.resource_class, classes, every=None),
        choice_field("zone", "Zone", criteria.zone, [(each, each) for each in choices.zones], every="all"),
        suggested_field("rack", "Rack", criteria.rack, choices.racks),
        choice_field("cell", "Cell", criteria.cell, cell_choices(choices.cells), every="all")
        if len(choices.cells) > 1
        else None,
        suggested_field("trait", "Trait", criteria.trait, choices.traits),
        suggested_field("aggregate", "Aggregate", criteria.aggregate, choices.aggregates),
        suggested_field("flavor", "Fits flavor", criteria.flavor, view.flavors),
        h.button(".button", type="submit")["Show"],
        h.a(".button.quiet", href=everything)["Clear"] if criteria.any else None,
    ]


def _search() -> h.Node:
    return h.form(".filter-form", action=addresses.HOSTS, role="search", data_map_search=True)[
        h.div(".field")[
            h.label(for_="map-search")["Find a host"],
            h.input("#map-search", type="search", name="search", maxlength="255", autocomplete="off"),
        ]
    ]


def _zoom() -> h.Node:
    actions = (("out", "\N{MINUS SIGN}", "Zoom out"), ("in", "+", "Zoom in"), ("fit", "Fit", "Show all"))
    return h.div(".map-zoom", role="group", aria_label="Zoom")[
        [
            h.button(".button", type="button", data_map_action=action, aria_label=label, title=label)[text]
            for action, text, label in actions
        ]
    ]


def _groups(view: FleetMapView) -> h.Node:
    if not view.all_hosts:
        return None
    switch = h.nav(".switch", aria_label="Group by")[
        [
            h.a(href=_self(view, group=by, page=1), aria_current="true" if by == view.group else None)[title]
            for by, title in _GROUPED.items()
        ]
    ]
    heads = [
        *_places(view.group),
        _head(view, "hosts", "Hosts"),
        _head(view, "down", "Not up"),
        _head(view, "share", f"{view.resource_class} used", numeric=False),
        head("Used", numeric=True),
        head("Capacity", numeric=True),
        _head(view, "free", "Free"),
        "Fullest host",
    ]
    rows = [_row(view, each) for each in view.groups]
    return h.section(".card.flush", aria_labelledby="groups")[
        h.div(".section-head")[h.h2("#groups")["Groups of hosts"], switch],
        table("Groups of hosts", heads, rows) if rows else empty("No host meets the filter"),
        numbered_pager(
            "groups", view.all_groups, view.page, GROUPS_ON_A_PAGE, lambda page: _self(view, page=page)
        ),
    ]


def _places(by: GroupedBy) -> list[str]:
    columns: dict[GroupedBy, list[str]] = {
        "place": ["Zone", "Rack", "Cell"],
        "rack": ["Zone", "Rack"],
        "zone": ["Zone"],
        "cell": ["Cell"],
    }
    return columns[by]


def _head(view: FleetMapView, sort: GroupSort, title: str, *, numeric: bool = True) -> h.Node:
    order: Order | None = "descending" if view.sort == sort else None
    return sorted_head(title, _self(view, sort=sort, page=1), order, numeric=numeric)


def _row(view: FleetMapView, each: HostGroupRow) -> h.Element:
    of = view.resource_class
    places = [
        (title, value)
        for title, value in (("Zone", each.zone), ("Rack", each.rack), ("Cell", each.cell))
        if value is not None
    ]
    shown = [(title, name(value) if value else _nowhere(title)) for title, value in places]
    # The whole row is one place: its last and narrowest name leads to its hosts.
    shown[-1] = shown[-1][0], h.a(href=_hosts_of(view, each))[shown[-1][1]]
    (first_title, first), *rest = shown
    share = percent(each.used, each.capacity)
    words = f"{amount(of, each.used)} of {amount(of, each.capacity)} used"
    bad = each.down + each.disabled
    return h.tr[
        h.th(scope="row", data_label=first_title)[first],
        [cell(title, value) for title, value in rest],
        cell("Hosts", number(each.hosts), numeric=True),
        cell(
            "Not up",
            h.span(class_="state-fails" if each.down else "state-off")[number(bad)] if bad else "0",
            numeric=True,
        ),
        cell(
            f"{of} used",
            h.span(".bar-line")[use_bar(each.used, each.capacity, words), h.span(".num")[share]]
            if each.capacity > 0
            else "–",
        ),
        cell("Used", amount(of, each.used), numeric=True),
        cell("Capacity", amount(of, each.capacity), numeric=True),
        cell("Free", amount(of, max(0, each.capacity - each.used)), numeric=True),
        cell(
            "Fullest host",
            [
                h.a(href=addresses.with_query(addresses.host(each.fullest_node), at=view.past))[
                    name(each.fullest)
                ],
                " ",
                h.span(".muted.num")[f"{100 * (each.fullest_share or 0):.0f} %"],
            ]
            if each.fullest_node is not None
            else "–",
        ),
    ]


def _nowhere(title: str) -> h.Node:
    return h.span(".muted")[f"no {title.lower()}"]


def _self(view: FleetMapView, **changed: object) -> str:
    """Return the address of this page with other parameters."""
    given: dict[str, object] = {
        "by": view.by,
        "class": view.resource_class,
        **msgspec.structs.asdict(view.criteria),
        "group": view.group,
        "sort": view.sort,
        "page": view.page,
        "at": view.past,
    }
    plain = {"by": "used", "group": "rack", "sort": "share", "page": 1}
    return addresses.changed(addresses.MAP, given, plain, **changed)


def _hosts(view: FleetMapView, **more: str) -> str:
    """Return the address of the list of the hosts that the filter chooses."""
    given = {**msgspec.structs.asdict(view.criteria), "class": view.resource_class, "at": view.past, **more}
    return addresses.with_query(addresses.HOSTS, **given)


def _hosts_of(view: FleetMapView, each: HostGroupRow) -> str:
    places = {"zone": each.zone, "rack": each.rack, "cell": each.cell}
    return _hosts(
        view, **{key: value or NOWHERE for key, value in places.items() if value is not None}, sort="used"
    )


FLEET_MAP: Final = Page(
    addresses.MAP,
    Rule(FLEET_RULE),
    fleet_map_view,
    _fleet_map,
    lambda _: "Fleet map",
    here=addresses.MAP,
    query=MapQuery,
    wide=True,
    files=("vendor/flatbush.js", "fleet_map.js"),
    kept_seconds=1.0,
)

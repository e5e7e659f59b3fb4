"""The list of hosts as HTML."""

from collections.abc import Iterable
from typing import Final

import htpy as h
import msgspec

from roost.dashboard import addresses
from roost.dashboard.fleet.criteria import NOWHERE
from roost.dashboard.html.bars import use_share
from roost.dashboard.html.lists import (
    Order,
    cell,
    choice_field,
    empty,
    head,
    numbered_pager,
    search_field,
    search_form,
    sorted_head,
    suggested_field,
    table,
)
from roost.dashboard.html.live import live_region
from roost.dashboard.html.places import cell_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.values import name, number
from roost.dashboard.page import Page
from roost.dashboard.service import FLEET_RULE
from roost.dashboard.views.hosts import (
    HOSTS_ON_A_PAGE,
    ClassAmount,
    HostListQuery,
    HostRow,
    HostSort,
    HostsView,
    hosts_view,
)
from roost.scheduler.nodes.host_states import STATES, HostState
from roost.web.policy import Rule

MARKS: Final[dict[HostState, str]] = {"up": "ok", "disabled": "off", "down": "fails"}
"""The mark of each state of a host."""

_SORTS: Final = (
    ("name", "by name"),
    ("used", "most used first"),
    ("free", "most free first"),
    ("state", "by state"),
    ("failures", "most failed builds first"),
)

NO_HOST: Final = (
    "There is no host yet",
    "A host appears here when its agent reports, or when placement has a provider for it.",
)
"""Title and text of a page without hosts."""


def _hosts(view: HostsView, viewing: Viewing) -> h.Node:
    return [
        page_head("Hosts", _lead(view), actions=h.a(".button", href=_map(view))["On the map"]),
        live_region(
            viewing,
            "hosts",
            h.section(".card.flush", aria_label="Hosts")[
                _form(view),
                _table(view),
                numbered_pager(
                    "hosts", view.matching, view.page, HOSTS_ON_A_PAGE, lambda page: _self(view, page=page)
                ),
            ],
            pause=5_000,
        ),
    ]


def _lead(view: HostsView) -> h.Node:
    of_all = "" if not view.criteria.any else f" of {number(view.all_hosts)}"
    counts = [
        (", " if place else ": ", f"{number(view.states[state])} {state}")
        for place, state in enumerate(each for each in STATES if view.states.get(each))
    ]
    return [f"{number(view.matching)}{of_all} hosts", counts, "."]


def _form(view: HostsView) -> h.Node:
    criteria = view.criteria
    return search_form(
        addresses.HOSTS,
        search_field("search", "Name", criteria.search, placeholder="Name or uuid"),
        choice_field("state", "State", criteria.state, [(each, each) for each in STATES], every="all"),
        choice_field("zone", "Zone", criteria.zone, [(each, each) for each in view.zones], every="all"),
        suggested_field("rack", "Rack", criteria.rack, view.racks),
        choice_field("cell", "Cell", criteria.cell, cell_choices(view.cells), every="all")
        if len(view.cells) > 1
        else None,
        suggested_field("trait", "Trait", criteria.trait, view.traits),
        suggested_field("aggregate", "Aggregate", criteria.aggregate, view.aggregates),
        choice_field(
            "class", "Class", view.resource_class, [(each, each) for each in view.known_classes], every=None
        )
        if view.known_classes
        else None,
        # Where rows are cards there are no heads to sort by.
        h.div(".narrow-only")[choice_field("sort", "Sort", view.sort, _SORTS, every=None)],
        kept=[("at", view.past)],
    )


def cell_choices(cells: Iterable[str]) -> list[tuple[str, str]]:
    """Return the choices of a filter by cell."""
    return [(each or NOWHERE, each or "without a cell") for each in cells]


def _table(view: HostsView) -> h.Node:
    if not view.hosts:
        return _nothing(view)
    classes = [
        _head(view, "used", f"{each} used") if each == view.resource_class else f"{each} used"
        for each in view.classes
    ]
    heads = [
        _head(view, "name", "Host"),
        _head(view, "state", "State"),
        "Zone",
        "Rack",
        "Cell",
        *classes,
        head("Instances", numeric=True),
        _head(view, "failures", _failures_title(view), numeric=True),
    ]
    return [
        table("Hosts", heads, [_row(view, each) for each in view.hosts]),
        view.failures_unknown
        and h.p(".card-part.muted")[
            f"Failed builds are those since the last success, as hosts report: {view.failures_unknown}."
        ],
    ]


def _failures_title(view: HostsView) -> str:
    return "Failed builds, 24 h" if view.failures_unknown is None else "Failed builds"


def _nothing(view: HostsView) -> h.Node:
    if view.all_hosts:
        return empty(
            "No host meets the filter",
            h.a(href=addresses.with_query(addresses.HOSTS, at=view.past))["Show all hosts"],
        )
    return empty(*NO_HOST)


def _head(view: HostsView, sort: HostSort, title: str, *, numeric: bool = False) -> h.Node:
    order: Order = "ascending" if sort == "name" else "descending"
    shown = order if view.sort == sort else None
    return sorted_head(title, _self(view, sort=sort, page=1), shown, numeric=numeric)


def _row(view: HostsView, each: HostRow) -> h.Element:
    failed = each.failed_builds if each.failures is None else each.failures
    return h.tr[
        h.th(scope="row", data_label="Host")[
            h.a(".name", href=addresses.with_query(addresses.host(each.node), at=view.past))[name(each.name)],
            each.nodename and (" ", h.span(".muted")[name(each.nodename)]),
        ],
        cell(
            "State",
            h.span(class_=f"state-{MARKS[each.state]}")[each.state] if each.state is not None else "not kept",
            h.span(".chip.state-look")["not in placement"]
            if not each.placed and view.version is not None
            else None,
        ),
        cell("Zone", name(each.zone)),
        cell("Rack", name(each.rack)),
        cell("Cell", cell_link(each.cell or None)),
        [cell(f"{of} used", _use(of, each.amounts.get(of))) for of in view.classes],
        cell("Instances", number(each.instances), numeric=True),
        cell(
            _failures_title(view),
            h.a(
                ".state-look",
                href=addresses.with_query(addresses.DECISIONS, host=each.name, result="failed"),
            )[number(failed)]
            if failed
            else "0",
            numeric=True,
        ),
    ]


def _use(resource_class: str, each: ClassAmount | None) -> h.Node:
    return "–" if each is None else use_share(resource_class, each.used, each.capacity)


def _self(view: HostsView, **changed: object) -> str:
    """Return the address of this list with other parameters."""
    given: dict[str, object] = {
        **msgspec.structs.asdict(view.criteria),
        "class": view.resource_class,
        "sort": view.sort,
        "page": view.page,
        "at": view.past,
    }
    plain = {"sort": "name", "page": 1}
    return addresses.changed(addresses.HOSTS, given, plain, **changed)


def _map(view: HostsView) -> str:
    fields = msgspec.structs.asdict(view.criteria)
    shown = {key: fields[key] for key in ("zone", "rack", "cell", "trait", "aggregate")}
    return addresses.with_query(addresses.MAP, **shown, at=view.past, **{"class": view.resource_class})


HOSTS: Final = Page(
    addresses.HOSTS,
    Rule(FLEET_RULE),
    hosts_view,
    _hosts,
    lambda _: "Hosts",
    here=addresses.HOSTS,
    query=HostListQuery,
    wide=True,
    kept_seconds=1.0,
)

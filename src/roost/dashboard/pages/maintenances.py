"""The list of maintenances as HTML."""

from typing import Final

import htpy as h

from roost.conductor.maintenance.types import ShownMaintenance
from roost.dashboard import addresses
from roost.dashboard.html.lists import cell, empty, pager, table
from roost.dashboard.html.live import live_region
from roost.dashboard.html.maintenances import hosts_bar, maintenance_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.states import maintenance_state, state_mark
from roost.dashboard.html.values import moment, name, number
from roost.dashboard.page import Page
from roost.dashboard.pages.absence import unless_absent
from roost.dashboard.views.maintenances import MaintenanceListQuery, MaintenancesView, maintenances_view
from roost.web.policy import Rule

_TITLE = "Maintenances"
_TABS = (("All", None), ("Under way", True), ("Ended", False))


def _maintenances(view: MaintenancesView, viewing: Viewing) -> h.Node:
    return [
        page_head(_TITLE, "Hosts that are emptied in waves, worked on and given back, the newest first."),
        h.section(".card.flush", aria_label="The list")[
            _tabs(view),
            live_region(viewing, "list", *_list(view), topic="events", pause=3_000),
        ],
    ]


def _tabs(view: MaintenancesView) -> h.Node:
    return h.nav(aria_label="Which")[
        h.ul(".tabs")[
            [
                h.li[
                    h.a(
                        href=_address(under_way),
                        aria_current="page" if under_way is view.under_way else None,
                    )[words]
                ]
                for words, under_way in _TABS
            ]
        ]
    ]


def _list(view: MaintenancesView) -> list[h.Node]:
    page = view.page
    if not page.maintenances:
        some = view.under_way is not None or view.marker is not None
        begin = h.p["An operator begins one with ", h.code["roost maintenance start"], "."]
        return [empty("No such maintenances" if some else "No maintenances yet", begin)]
    heads: list[h.Node] = ["Maintenance", "State", "Hosts given back"]
    heads += [h.th(".num", scope="col")["Wave"], h.th(".num", scope="col")["Left"], "Began (UTC)", "By"]
    return [
        table("Maintenances", heads, [_row(each) for each in page.maintenances]),
        pager(
            len(page.maintenances),
            "on this page",
            _address(view.under_way) if view.marker else None,
            _address(view.under_way, page.next) if page.next else None,
        ),
    ]


def _row(each: ShownMaintenance) -> h.Element:
    return h.tr[
        h.th(scope="row")[maintenance_link(each.uuid)],
        cell(
            "State",
            state_mark(maintenance_state(each.state)),
            each.reason and h.div(".muted.clamp", title=each.reason)[h.bdi[each.reason]],
        ),
        cell("Hosts given back", hosts_bar(each.hosts)),
        cell("Wave", number(each.wave), numeric=True),
        cell("Left", number(each.left), numeric=True),
        cell("Began", moment(each.began)),
        cell("By", name(each.user_id)),
    ]


def _address(under_way: bool | None, marker: str | None = None) -> str:
    word = None if under_way is None else str(under_way).lower()
    return addresses.with_query(addresses.MAINTENANCES, under_way=word, marker=marker)


MAINTENANCES: Final = Page(
    addresses.MAINTENANCES,
    Rule("conductor:maintenances:list"),
    maintenances_view,
    unless_absent(_TITLE, _maintenances),
    lambda _: _TITLE,
    here=addresses.MAINTENANCES,
    query=MaintenanceListQuery,
)

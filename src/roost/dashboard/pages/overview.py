"""The overview as HTML."""

from typing import Final

import htpy as h

from roost.dashboard.addresses import ROOT
from roost.dashboard.html.bars import use_bar
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.values import amount, number, percent
from roost.dashboard.page import Page
from roost.dashboard.service import FLEET_RULE
from roost.dashboard.views.overview import ClassCapacity, OverviewView, overview_view
from roost.web.policy import Rule


def _overview(view: OverviewView, viewing: Viewing) -> h.Node:
    return [
        page_head("Overview", f"{number(view.hosts)} hosts"),
        h.section(".card", aria_labelledby="capacity")[
            h.h2("#capacity")["Capacity and use"],
            h.table(".table")[
                h.thead[h.tr[h.th["Class"], h.th(".num")["Used"], h.th(".num")["Capacity"], h.th["Use"]]],
                h.tbody[[_row(each) for each in view.classes]],
            ],
        ],
    ]


def _row(each: ClassCapacity) -> h.Node:
    used, capacity = amount(each.resource_class, each.used), amount(each.resource_class, each.capacity)
    return h.tr[
        h.th(scope="row")[each.resource_class],
        h.td(".num")[used],
        h.td(".num")[capacity],
        h.td[
            use_bar(each.used, each.capacity, f"{used} of {capacity} used"), percent(each.used, each.capacity)
        ],
    ]


OVERVIEW: Final = Page(ROOT, Rule(FLEET_RULE), overview_view, _overview, lambda _: "Overview", here=ROOT)

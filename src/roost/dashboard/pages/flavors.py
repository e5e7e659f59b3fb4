"""The flavors as HTML: how many of each fit now, where, and what binds."""

from typing import Any, Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.addresses import FLAVORS
from roost.dashboard.html.bars import bar
from roost.dashboard.html.lists import cell, empty, search_field, search_form, table
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.times import duration
from roost.dashboard.html.values import amount, counted, number
from roost.dashboard.page import Page
from roost.dashboard.pages.what_if import fits_words
from roost.dashboard.service import FLEET_RULE
from roost.dashboard.views.flavors import FlavorRow, FlavorsQuery, FlavorsView, flavors_view
from roost.model.spec import Flavor
from roost.model.what_if import WhatIf
from roost.web.policy import Rule

_MOST_ZONES = 4
"""Zones that a row names."""

_SECTION: Final = "flavors"


def _flavors(view: FlavorsView, viewing: Viewing) -> h.Node:
    return [
        page_head(
            "Flavors",
            "How many more of each fit now, alone, and what keeps the next one away. Instances are really "
            "placed one after another on a copy of the state, for a project without hosts of its own.",
        ),
        h.section(".card.flush", aria_label="The list")[
            search_form(FLAVORS, search_field("search", "Name", view.search, placeholder="m1.small")),
            _list(view, viewing),
        ],
    ]


def _list(view: FlavorsView, viewing: Viewing) -> h.Element:
    """The table. While counts are due it fetches itself anew, and each time one of them is made."""
    due = sum(each.due for each in view.flavors)
    address = addresses.with_query(FLAVORS, search=view.search, count="true")
    asking: dict[str, Any] = {}
    if due and viewing.nonce:
        asking = {
            "hx_nonce": viewing.nonce,
            "hx_get": address,
            "hx_select": f"#{_SECTION}",
            "hx_trigger": "load delay:150ms",
            "hx_swap": "outerHTML",
        }
    heads: list[h.Node] = [
        "Flavor",
        h.th(".num", scope="col")["Fit now"],
        h.th(".num", scope="col")["On hosts"],
        "Where",
        "What binds",
        h.th(".num", scope="col")["In use"],
        h.th(".num", scope="col")["Counted"],
    ]
    most = max((each.fit.answer.fits for each in view.flavors if each.fit and each.fit.answer), default=0)
    rows = [_row(each, place, view.at, most) for place, each in enumerate(view.flavors)]
    missing = sum(each.fit is None for each in view.flavors)
    return h.div(".region", id=_SECTION, aria_busy="true" if missing else None, **asking)[
        table("Flavors", heads, rows, id="flavors-table") if rows else _nothing(view),
        h.div(".pager")[
            h.span(role="status")[
                counted(len(rows), "flavor")
                + (f", {number(view.others)} rarer ones not shown" if view.others else "")
                + (f"; counting, {number(missing)} to go" if missing else "")
            ],
            h.a(".button.small", href=address)["Count the next one"] if due and not viewing.nonce else None,
        ]
        if rows
        else None,
    ]


def _nothing(view: FlavorsView) -> h.Node:
    if view.search:
        return empty("Nothing found", h.a(href=FLAVORS)["Show all flavors"])
    return empty("No flavors yet", "They are those of recent requests and of present instances.")


def _row(row: FlavorRow, place: int, now: float, most: int) -> h.Element:
    flavor, fit = row.flavor, row.fit
    answer = None if fit is None else fit.answer
    hosts: h.Node = None
    if answer is not None:
        hosts = h.span[number(answer.on_hosts), h.span(".muted")[f" of {number(answer.hosts)}"]]
    age = "–" if fit is None else f"{duration(max(0.0, now - fit.at))} ago"
    return h.tr[
        h.th(scope="row")[
            h.div(".spec")[
                # What has the focus keeps it by its id when the list is fetched anew.
                h.a(".name", id=f"flavor-{place}", href=row.address)[h.bdi[flavor.name]],
                h.div(".muted")[size_words(flavor)],
                [_extra_spec(key, value) for key, value in flavor.extra_specs.items()],
            ]
        ],
        cell("Fit now", _fits(row), numeric=True),
        cell("On hosts", hosts, numeric=True),
        cell("Where", None if answer is None else _zones(answer, most)),
        cell("What binds", _binds(row)),
        cell("In use", _use(row), numeric=True),
        cell("Counted", h.span(".muted")[age], numeric=True),
    ]


def _extra_spec(key: str, value: str) -> h.Element:
    return h.div(".mono.muted.folded")[h.bdi[f"{key}={value}"]]


def size_words(flavor: Flavor) -> str:
    """Return the size of a flavor in words."""
    parts = [counted(flavor.vcpus, "vCPU"), amount("MEMORY_MB", flavor.memory_mb)]
    disk = flavor.disk_gb + flavor.ephemeral_gb
    return ", ".join([*parts, f"{amount('DISK_GB', disk)} disk"] if disk else parts)


def _fits(row: FlavorRow) -> h.Node:
    if row.fit is None:
        return h.span(".muted")["waiting"]
    if row.fit.answer is None:
        return h.span(".muted")["–"]
    words = fits_words(row.fit.answer)
    return h.strong[words] if row.fit.answer.fits else h.span(".state-fails")["none"]


def _zones(answer: WhatIf, most: int) -> h.Node:
    """The number as a bar, and the zones that take most."""
    if not answer.zones:
        return None
    zones = sorted(answer.zones, key=lambda each: -each.instances)
    shown, rest = zones[:_MOST_ZONES], len(zones) - _MOST_ZONES
    names = [
        [", " if position else "", h.bdi[each.zone], f" {number(each.instances)}"]
        for position, each in enumerate(shown)
    ]
    more = f" and {number(rest)} more zones" if rest > 0 else None
    share = 100 * answer.fits / max(most, 1)
    return h.div[bar([(share, "bar-used")], "", kind="thin"), h.span(".muted")[names, more]]


def _binds(row: FlavorRow) -> h.Node:
    if row.fit is None:
        return None
    if row.fit.failure is not None:
        return h.span(".state-look")[h.bdi[row.fit.failure]]
    answer = row.fit.answer
    if answer is None or answer.binds is None:
        return h.span(".muted")["nothing up to there"]
    if not row.causes:
        return h.span(".muted.clamp", title=answer.binds.sentence)[h.bdi[answer.binds.sentence]]
    shown = []
    for position, each in enumerate(row.causes):
        cause = each.cause
        words: h.Node = ["hosts that ", h.bdi[cause.text]]
        if cause.resource_class is not None and cause.wanted is not None:
            name = cause.resource_class
            words = [h.bdi[name], f": {amount(name, cause.free or 0)} of {amount(name, cause.wanted)} free"]
        shown.append([" and " if position else "", words])
    return h.span(title=answer.binds.sentence)[shown]


def _use(row: FlavorRow) -> h.Node:
    return h.div[counted(row.instances, "instance"), h.div(".muted")[counted(row.runs, "request")]]


FLAVORS_PAGE: Final = Page(
    FLAVORS,
    Rule(FLEET_RULE),
    flavors_view,
    _flavors,
    lambda _: "Flavors",
    here=FLAVORS,
    query=FlavorsQuery,
)

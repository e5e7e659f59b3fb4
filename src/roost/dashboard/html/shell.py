"""The frame of a page: head, navigation, foot."""

from collections.abc import Sequence
from typing import NamedTuple

import htpy as h

from roost import __version__
from roost.dashboard import addresses
from roost.dashboard.assets import asset
from roost.dashboard.html.icons import icon
from roost.dashboard.html.time_bar import time_bar
from roost.dashboard.past.past_moments import ShownMoment

NAVIGATION = (
    ("Overview", "overview", addresses.ROOT, False),
    ("Fleet map", "map", addresses.MAP, False),
    ("Hosts", "hosts", addresses.HOSTS, False),
    ("Instances", "instances", addresses.INSTANCES, True),
    ("Decisions", "decisions", addresses.DECISIONS, True),
    ("Cells", "cells", addresses.CELLS, False),
    ("Events", "events", addresses.EVENTS, False),
    ("Maintenances", "maintenances", addresses.MAINTENANCES, False),
    ("Flavors", "flavors", addresses.FLAVORS, False),
    ("What if", "what-if", addresses.WHAT_IF, False),
)
"""Title, icon and address of each page in the navigation, and whether it is for users of a project too."""

_OF_FLEET = (addresses.ROOT, addresses.MAP, addresses.HOSTS)
"""Pages of the navigation that can be shown as of a moment, which their links keep."""

_STYLES = ("roost.css", "figures.css")
_HTMX = ("vendor/hx-csp.min.js",)
_HTMX_CONFIG = (
    '{"extensions": "hx-csp", "includeIndicatorCSS": false, "history": false, '
    '"morphIgnore": ["data-htmx-powered", "open"], '
    '"morphSkipChildren": ".chart-plot, .chart-readout, .map-frame, .map-legend, .map-card"}'
)
"""A region that is fetched again keeps what scripts have drawn in it, and what somebody has opened."""


class Viewing(NamedTuple):
    """The viewer of a page: the name, whether it is an operator, and the guard of the session.

    ``address``: of this page with its query. ``at``: the past that is shown, None: the present. ``timed``:
    the page has a past. ``nonce``: of this response, for the elements that htmx may act on: each has it in
    ``hx-nonce``, so that text of others that became an element would do nothing. ``acts``: there is a
    conductor that carries out actions. ``shown``: the moment that a page with a past shows; None: the page
    has none, or the process.
    """

    user: str | None
    operator: bool
    guard: str | None
    address: str
    at: str | None = None
    timed: bool = False
    nonce: str | None = None
    acts: bool = False
    shown: ShownMoment | None = None

    @classmethod
    def of_nobody(cls) -> "Viewing":
        """Return the viewer of a page without a session."""
        return cls(None, False, None, addresses.ROOT)


def shell(
    viewing: Viewing,
    title: str,
    content: h.Node,
    *,
    here: str = "",
    wide: bool = False,
    files: Sequence[str] = (),
) -> str:
    """Return a whole page.

    ``here``: the address of its entry in the navigation. ``wide``: the content has no maximum width.
    ``files``: further scripts and styles.
    """
    if viewing.user is None:
        body: h.Node = h.main("#main.gate", tabindex="-1")[content]
    else:
        main = h.main("#main", class_=["main", wide and "wide"], tabindex="-1")
        body = h.div(".shell")[
            _navigation(viewing, here), main[time_bar(viewing.address, viewing.shown), content]
        ]
    page = h.html(lang="en")[
        h.head[
            h.meta(charset="utf-8"),
            h.meta(name="viewport", content="width=device-width, initial-scale=1"),
            h.title[f"{title} · Roost"],
            h.link(rel="icon", href=asset("favicon.svg"), type="image/svg+xml"),
            [h.link(rel="stylesheet", href=asset(name)) for name in _STYLES],
            [h.link(rel="stylesheet", href=asset(name)) for name in files if name.endswith(".css")],
            h.script(src=asset("theme.js")),
            _scripts(viewing),
            [_script(name) for name in files if name.endswith(".js")],
        ],
        h.body(data_live=addresses.LIVE if viewing.operator and viewing.nonce else None)[
            h.a(".skip", href="#main")["Skip to content"], body
        ],
    ]
    return f"{page}"


def page_head(
    title: h.Node, *lead: h.Node, crumbs: tuple[tuple[str, str], ...] = (), actions: h.Node = None
) -> h.Element:
    """Return the head of a page.

    ``lead``: the sentences below the title. ``crumbs``: title and address of the pages above it.
    """
    trail: h.Node = None
    if crumbs:
        above = [h.li[h.a(href=address)[h.bdi[name]]] for name, address in crumbs]
        trail = h.nav(".crumbs", aria_label="Breadcrumbs")[
            h.ol[above, h.li(aria_current="page")[h.bdi[title]]]
        ]
    return h.div(".page-head")[
        trail,
        h.h1[h.bdi[title]],
        [h.p(".lead")[each] for each in lead if each],
        h.div(".page-actions")[actions] if actions else None,
    ]


def _scripts(viewing: Viewing) -> h.Node:
    if viewing.nonce is None:
        return None
    return [
        h.meta(name="htmx-config", content=_HTMX_CONFIG),
        h.meta(name="roost-session", content=viewing.guard) if viewing.guard else None,
        h.script(src=asset("vendor/htmx.min.js"), nonce=viewing.nonce, defer=True),
        [_script(name) for name in _HTMX],
        _script("page.js"),
        _script("time_bar.js") if viewing.shown is not None else None,
        _script("live.js") if viewing.operator else None,
    ]


def _then(viewing: Viewing, address: str) -> str:
    """Return the address of a page as of the moment that is shown, if the page has a past."""
    return addresses.with_query(address, at=viewing.at) if address in _OF_FLEET else address


def _script(name: str) -> h.Element:
    """Return a script: our own are modules, those of packages are not."""
    if name.startswith("vendor/"):
        return h.script(src=asset(name), defer=True)
    return h.script(src=asset(name), type="module")


def _navigation(viewing: Viewing, here: str) -> h.Node:
    links = [
        h.li[
            h.a(href=_then(viewing, address), aria_current="page" if address == here else None)[
                icon(drawn), title
            ]
        ]
        for title, drawn, address, of_projects in NAVIGATION
        if viewing.operator or of_projects
    ]
    return h.header(".nav")[
        h.a(".brand", href=addresses.ROOT)[icon("roost"), "Roost"],
        h.form(".nav-search", role="search", aria_label="All", action=addresses.SEARCH)[
            h.input(
                type="search",
                name="search",
                aria_label="Search hosts, instances, decisions",
                placeholder="Search",
                maxlength="200",
            )
        ],
        h.nav(aria_label="Dashboard")[h.ul(".nav-links")[links]],
        h.div(".nav-foot")[
            h.span(".nav-user.truncate", title=viewing.user)[h.bdi[viewing.user]],
            h.span(".live-state", data_live_state=True) if viewing.operator and not viewing.at else None,
            h.button(".button.quiet.small", type="button", data_theme_choice=True)[icon("theme"), "Theme"],
            viewing.guard
            and h.button(".button.quiet.small", type="button", data_post=addresses.LOGOUT)[
                icon("leave"), "Log out"
            ],
            h.span(".muted")[
                f"Roost {__version__} · ",
                h.a(href=_as_json(viewing.address), type="application/json")["JSON"],
            ],
        ],
    ]


def _as_json(address: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}format=json"

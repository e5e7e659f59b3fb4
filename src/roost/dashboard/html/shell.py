"""The frame of a page: head, navigation, foot."""

from typing import NamedTuple

import htpy as h

from roost import __version__
from roost.dashboard import addresses
from roost.dashboard.assets import asset

NAVIGATION = (
    ("Overview", addresses.ROOT, False),
    ("Map", addresses.MAP, False),
    ("Hosts", addresses.HOSTS, False),
    ("Instances", addresses.INSTANCES, True),
    ("Decisions", addresses.DECISIONS, True),
    ("Cells", addresses.CELLS, False),
    ("Events", addresses.EVENTS, False),
    ("Flavors", addresses.FLAVORS, False),
    ("What if", addresses.WHAT_IF, False),
)
"""Title and address of each page in the navigation, and whether it is for users of a project too."""


_HTMX = ("htmx.min.js", "hx-csp.min.js", "hx-sse.min.js")


class Viewing(NamedTuple):
    """The viewer of a page: the name, whether it is an operator, and the guard of the session.

    ``address``: of this page with its query. ``at``: the past that is shown, None: the present. ``timed``:
    the page has a past.
    """

    user: str | None
    operator: bool
    guard: str | None
    address: str
    at: str | None = None
    timed: bool = False

    @classmethod
    def of_nobody(cls) -> "Viewing":
        """Return the viewer of a page without a session."""
        return cls(None, False, None, addresses.ROOT)


def shell(viewing: Viewing, title: str, content: h.Node, *, here: str = "") -> str:
    """Return a whole page. ``here``: the address of its entry in the navigation."""
    guard = [] if viewing.guard is None else [h.meta(name="roost-session", content=viewing.guard)]
    page = h.html(lang="en")[
        h.head[
            h.meta(charset="utf-8"),
            h.meta(name="viewport", content="width=device-width, initial-scale=1"),
            h.meta(name="color-scheme", content="light dark"),
            h.meta(name="htmx-config", content='{"includeIndicatorCSS": false, "allowEval": false}'),
            guard,
            h.title[f"{title} · Roost"],
            h.link(rel="icon", href=asset("roost.svg"), type="image/svg+xml"),
            h.link(rel="stylesheet", href=asset("roost.css")),
            [h.script(src=asset(f"vendor/{each}"), defer=True) for each in _HTMX],
            h.script(src=asset("page.js"), type="module"),
        ],
        h.body[
            h.a(".skip", href="#main")["Skip to the content"],
            h.div(".shell")[
                _navigation(viewing, here),
                h.main("#main.main", tabindex="-1")[content],
            ],
        ],
    ]
    return f"{page}"


def page_head(title: str, *about: h.Node, crumbs: tuple[tuple[str, str], ...] = ()) -> h.Element:
    """Return the head of a page. ``crumbs``: title and address of the pages above it."""
    trail: h.Node = None
    if crumbs:
        trail = h.nav(".crumbs", aria_label="Path")[
            [(h.a(href=address)[name], h.span(aria_hidden="true")[" / "]) for name, address in crumbs]
        ]
    return h.header(".page-head")[trail, h.h1[h.bdi[title]], [h.p(".muted")[each] for each in about if each]]


def _navigation(viewing: Viewing, here: str) -> h.Node:
    shown = [each for each in NAVIGATION if viewing.operator or each[2]] if viewing.user else []
    links = [
        h.li[h.a(href=address, aria_current="page" if address == here else None)[title]]
        for title, address, _ in shown
    ]
    return h.header(".nav")[
        h.a(".brand", href=addresses.ROOT)["Roost"],
        h.nav(aria_label="Pages")[h.ul[links]] if links else None,
        viewing.user
        and h.div(".session")[
            h.span(".muted")[h.bdi[viewing.user]],
            viewing.guard
            and h.button(".link", type="button", hx_post=addresses.LOGOUT, hx_swap="none")["Log out"],
        ],
        h.footer(".muted")[
            f"Roost {__version__}",
            viewing.user
            and (" · ", h.a(href=_as_json(viewing.address), type="application/json")["This page as JSON"]),
        ],
    ]


def _as_json(address: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}format=json"

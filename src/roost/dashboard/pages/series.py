"""Series over time as HTML: a chart, and the same numbers as a table."""

from datetime import UTC, datetime
from typing import Final

import htpy as h
import msgspec

from roost.dashboard import addresses
from roost.dashboard.html.lists import empty, head, table
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.values import amount, number
from roost.dashboard.page import Page
from roost.dashboard.service import FLEET_RULE
from roost.dashboard.views.series import SPANS, SeriesQuery, SeriesView, Shown, Span, series_view
from roost.web.policy import Rule

MOST_ROWS: Final = 72
"""Rows of the table at most: further values are between them."""


CHART_FILES: Final = ("vendor/uPlot.min.css", "vendor/uPlot.iife.min.js", "charts.js")
"""Scripts and style of pages with charts."""


def series_figure(
    of: Shown, title: str, *, resource_class: str | None = None, span: Span = "day", small: bool = False
) -> h.Element:
    """Return a chart that fetches its numbers, with the way to the table of them."""
    query = {"of": of, "class": resource_class, "span": span}
    page = addresses.with_query(addresses.SERIES, **query)
    numbers = addresses.with_query(addresses.SERIES, **query, format="json")
    return h.figure(class_=["chart", "card", small and "small"], data_chart_url=numbers)[
        h.figcaption[h.bdi[title], h.a(".muted", href=page)["As a table"]],
        h.div(".chart-plot"),
        h.div(".chart-readout"),
    ]


def _series(view: SeriesView, viewing: Viewing) -> h.Node:
    chart = msgspec.json.encode(view).decode()
    return [
        page_head(view.title, view.note, crumbs=(("Overview", addresses.ROOT),)),
        h.nav(".switch", aria_label="Span")[
            [
                h.a(href=_self(view, span), aria_current="true" if span == view.span else None)[
                    span.capitalize()
                ]
                for span in SPANS
            ]
        ],
        h.figure(".chart.card", data_chart=chart)[
            h.figcaption[h.bdi[view.title]], h.div(".chart-plot"), h.div(".chart-readout")
        ],
        _table(view),
    ]


def _table(view: SeriesView) -> h.Node:
    # The newest value is always in the table.
    every = -(-len(view.x) // MOST_ROWS)
    places = range(len(view.x) - 1, -1, -every)
    rows = [
        h.tr[
            h.th(".nowrap", scope="row")[f"{datetime.fromtimestamp(view.x[place], UTC):%a %d %b, %H:%M}"],
            [h.td(".num", data_label=line.name)[_value(view, line.values[place])] for line in view.series],
        ]
        for place in places
        if any(line.values[place] is not None for line in view.series)
    ]
    if not rows:
        return h.section(".card")[empty("Nothing is known of this time")]
    heads = ["Time (UTC)", *(head(line.name, numeric=True) for line in view.series)]
    note = None if every == 1 else h.p(".card-part.muted")["The JSON of this page has all values."]
    return h.section(".card.flush", aria_label="The same as a table")[table(view.title, heads, rows), note]


def _value(view: SeriesView, value: float | None) -> h.Node:
    if value is None:
        return h.span(".muted")["not known"]
    whole = round(value)
    if view.of == "use":
        return amount(view.resource_class, whole)
    return number(whole if value == whole else value)


def _self(view: SeriesView, span: Span) -> str:
    resource_class = view.resource_class if view.of == "use" else None
    return addresses.with_query(addresses.SERIES, of=view.of, span=span, **{"class": resource_class})


SERIES: Final = Page(
    addresses.SERIES,
    Rule(FLEET_RULE),
    series_view,
    _series,
    lambda view: view.title,
    here=addresses.ROOT,
    query=SeriesQuery,
    files=CHART_FILES,
)

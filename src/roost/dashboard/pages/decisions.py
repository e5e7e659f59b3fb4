"""The list of decisions as HTML."""

from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.addresses import DECISIONS
from roost.dashboard.html.lists import (
    cell,
    choice_field,
    empty,
    pager,
    search_field,
    search_form,
    table,
    text_field,
)
from roost.dashboard.html.places import host_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.states import attempt_state, decision_state, state_mark
from roost.dashboard.html.values import moment, name, number
from roost.dashboard.page import Page
from roost.dashboard.views.decisions import DecisionRow, DecisionsQuery, DecisionsView, decisions_view
from roost.model.record import RESULTS
from roost.scheduler.api.operations import RECORDS

_MOST_HOSTS = 2
"""Hosts that a row names."""

_RESULTS = tuple((each, attempt_state(each).words) for each in RESULTS)


def _decisions(view: DecisionsView, viewing: Viewing) -> h.Node:
    of_all = viewing.operator
    rows = [_row(each, of_all) for each in view.decisions]
    heads: list[h.Node] = ["When (UTC)", "Outcome", "Request", *(["Project"] if of_all else []), "Flavor"]
    heads += [h.th(".num", scope="col")["Instances"], "Where, or why not" if of_all else "Why not"]
    heads += [h.th(".num", scope="col")["Took"]]
    first = _address(view, marker=None) if view.asked.marker else None
    following = _address(view, marker=view.next) if view.next else None
    return [
        page_head("Decisions", "Each run of the scheduler, the last one first."),
        h.section(".card.flush", aria_label="The list")[
            _form(view.asked, of_all),
            table("Decisions", heads, rows) if rows else _nothing(view.asked),
            pager(len(rows), "decisions", first, following) if first or following else None,
        ],
    ]


def _form(asked: DecisionsQuery, of_all: bool) -> h.Element:
    return search_form(
        DECISIONS,
        search_field("request_id", "Request", asked.request_id, placeholder="req-…"),
        search_field("instance", "Instance", asked.instance, placeholder="uuid"),
        [text_field("host", "Host", asked.host), text_field("project_id", "Project", asked.project_id)]
        if of_all
        else None,
        choice_field(
            "refused",
            "Outcome",
            "true" if asked.refused else None,
            [("true", "Refused")],
            every="Any outcome",
        ),
        choice_field("result", "Attempt", asked.result, _RESULTS, every="Any result"),
        text_field("since", "Since (UTC)", asked.since, type="datetime-local"),
        text_field("until", "Until (UTC)", asked.until, type="datetime-local"),
    )


def _row(each: DecisionRow, of_all: bool) -> h.Element:
    return h.tr[
        cell("When", moment(each.at)),
        cell("Outcome", h.span(".nowrap")[state_mark(decision_state(each.outcome))]),
        h.th(scope="row")[
            h.a(".mono.nowrap", href=addresses.decision(each.run))[h.bdi[_short(each.request_id)]]
        ],
        cell("Project", name(each.project_id)) if of_all else None,
        cell(
            "Flavor",
            h.bdi(".nowrap")[each.flavor],
            h.span(".muted")[f" {each.operation}"] if each.operation != "create" else None,
        ),
        cell("Instances", number(each.instances), numeric=True),
        cell("Where, or why not" if of_all else "Why not", _where(each)),
        cell("Took", h.span(".nowrap")[f"{1000 * each.seconds:,.0f} ms"], numeric=True),
    ]


def _where(each: DecisionRow) -> h.Node:
    more = len(each.hosts) - _MOST_HOSTS
    hosts = [
        [", " if position else None, host_link(host.name, host.node)]
        for position, host in enumerate(each.hosts[:_MOST_HOSTS])
    ]
    return h.div[
        hosts,
        f" and {number(more)} more" if more > 0 else None,
        h.div(".muted.clamp", title=each.reason)[h.bdi[each.reason]] if each.reason else None,
    ]


def _short(request_id: str) -> str:
    """Return a request id without the end of its uuid, which nobody reads."""
    return f"{request_id[:12]}…" if request_id.startswith("req-") and len(request_id) == 40 else request_id


def _nothing(asked: DecisionsQuery) -> h.Element:
    if asked == DecisionsQuery():
        return empty("No decisions yet")
    return empty("Nothing found", h.a(href=DECISIONS)["Show all decisions"])


def _address(view: DecisionsView, marker: str | None) -> str:
    given = {
        each: getattr(view.asked, each)
        for each in DecisionsQuery.__struct_fields__
        if each not in ("format", "limit", "refused", "marker")
    }
    limit = view.asked.limit if view.asked.limit != DecisionsQuery().limit else None
    refused = "true" if view.asked.refused else None
    return addresses.with_query(DECISIONS, **given, refused=refused, limit=limit, marker=marker)


DECISIONS_PAGE: Final = Page(
    DECISIONS,
    RECORDS,
    decisions_view,
    _decisions,
    lambda _: "Decisions",
    here=DECISIONS,
    query=DecisionsQuery,
)

"""One instance as HTML: its state, the hosts that it was on, its claim and its history."""

from datetime import UTC, datetime
from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.actions.links import act_links
from roost.dashboard.html.history import history_timeline
from roost.dashboard.html.lists import cell, table, text_field
from roost.dashboard.html.live import live_region
from roost.dashboard.html.places import cell_link, host_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.states import instance_state, move_state, state_mark
from roost.dashboard.html.time_strip import Phase, time_strip
from roost.dashboard.html.times import duration, weekday_moment
from roost.dashboard.html.values import amount, moment, name
from roost.dashboard.page import Page, TimedQuery
from roost.dashboard.pages.absence import unless_absent
from roost.dashboard.views.host_stays import HostStay
from roost.dashboard.views.instance import InstanceView, ProviderClaim, instance_view
from roost.web.policy import Rule

_CRUMBS = (("Instances", addresses.INSTANCES),)


def _instance(view: InstanceView, viewing: Viewing) -> h.Node:
    return [
        page_head(
            view.name or view.uuid,
            view.name and h.bdi(".mono")[view.uuid],
            crumbs=_CRUMBS,
            actions=_actions(view, viewing),
        ),
        live_region(
            viewing,
            "instance",
            _notices(view),
            h.div(".grid.side")[
                h.div(".grid")[_move(view), _places(view), _history(view)],
                h.div(".grid")[_facts(view, viewing), _claim(view)],
            ],
            topic="events",
            pause=5_000,
        ),
    ]


def _actions(view: InstanceView, viewing: Viewing) -> h.Node:
    # A page of the past changes nothing.
    return act_links(viewing, view.uuid, view.acts) if view.acts and viewing.at is None else None


def _notices(view: InstanceView) -> h.Node:
    instance = view.instance
    if instance is None:
        return h.div(".notice.state-off")[
            h.p[
                "Nothing is left of this instance",
                view.ended is not None and [" since ", weekday_moment(view.ended)],
                ". Its history is kept for some days.",
            ]
        ]
    if instance.reason is None:
        return None
    mark = instance_state(instance.state).mark
    return h.div(class_=f"notice state-{'look' if mark == 'ok' else mark}")[
        h.p[h.strong[instance_state(instance.state).words], ": ", h.bdi(".name")[instance.reason]]
    ]


def _places(view: InstanceView) -> h.Element:
    return h.section(".card.flush", aria_labelledby="where")[
        h.div(".section-head")[h.h2("#where")["Where it ran"], _strip_note(view)],
        h.div(".card-part")[_now(view), _strip(view), _ask(view), _answer(view)],
        bool(view.stays)
        and table(
            "Hosts that it was on",
            ["From (UTC)", "Until", "Host", "Cell", "Result"],
            [_stay(each, view) for each in reversed(view.stays)],
        ),
    ]


def _move(view: InstanceView) -> h.Node:
    """The move that is under way, with the states that it entered."""
    move = view.move
    if move is None:
        return None
    target = move.target_host and [" to ", h.strong[host_link(move.target_host, move.target_node)]]
    source = move.source_host and h.strong[host_link(move.source_host, move.source_node)]
    return h.section(".card", aria_labelledby="move")[
        h.div(".section-head")[h.h2("#move")["Its move"], state_mark(move_state(move.state), chip=True)],
        h.p[
            _KINDS.get(move.kind, move.kind),
            source and [" from ", source],
            target or " to a host that is looked for",
            move.user_id and [", asked for by ", h.bdi[move.user_id]],
            ".",
        ],
        move.reason and h.p(".muted")[h.bdi[move.reason]],
        h.ol(".timeline")[
            [
                h.li(class_=f"state-{move_state(each.state).mark}")[
                    weekday_moment(each.at),
                    h.div[move_state(each.state).words, each.host and [": ", h.bdi[each.host]]],
                    each.reason and h.div[h.bdi(".name.muted")[each.reason]],
                ]
                for each in move.steps
            ]
        ],
    ]


_KINDS = {
    "migrate": "A migration",
    "live_migrate": "A live migration",
    "resize": "A resize",
    "evacuate": "An evacuation",
}
"""The kinds of moves in words."""


def _strip_note(view: InstanceView) -> h.Node:
    hosts = len({each.host for each in view.stays if each.host})
    return h.span(".muted")[f"{hosts} hosts"] if hosts > 1 else None


def _now(view: InstanceView) -> h.Node:
    last = view.stays[-1] if view.stays else None
    if last is None:
        return h.p["It was on no host."]
    there = _host(last)
    if last.ended is None and last.ran is not None:
        return h.p["It runs on ", h.strong[there], " since ", weekday_moment(last.ran), "."]
    if last.ended is None:
        return h.p["It is being built on ", h.strong[there], " since ", weekday_moment(last.began), "."]
    ended: h.Node = [" until ", weekday_moment(last.ended), "."]
    if last.ran is None:
        return h.p["It ran nowhere. It was last tried on ", h.strong[there], ended]
    return h.p["It ran on ", h.strong[there], " from ", weekday_moment(last.ran), ended]


def _strip(view: InstanceView) -> h.Node:
    """The stays as a bar over time, from the first one until now or the end."""
    if not view.stays:
        return None
    first, end = view.stays[0].began, view.ended or view.now
    phases = []
    for each in view.stays:
        until = each.ended or end
        there = each.host or "a host"
        ran = until if each.ran is None else each.ran
        phases.append(
            Phase(each.began, ran, "bar-allocated", f"built on {there}, {duration(ran - each.began)}")
        )
        if each.ran is not None:
            phases.append(Phase(ran, until, "bar-used", f"ran on {there}, {duration(until - ran)}"))
    label = "; ".join(each.words for each in phases)
    return h.figure[
        time_strip(phases, first, end, label),
        h.figcaption(".strip-ends")[moment(first), "now" if view.instance else moment(end)],
    ]


def _ask(view: InstanceView) -> h.Element:
    asked = None if view.asked is None else _local(view.asked)
    return h.form(".filter-form", action=addresses.instance(view.uuid))[
        text_field("at", "Where was it at (UTC)", asked, type="datetime-local", step="1"),
        h.button(".button", type="submit")["Look"],
    ]


def _answer(view: InstanceView) -> h.Node:
    if view.asked is None:
        return None
    when = weekday_moment(view.asked)
    if view.asked > view.now:
        return h.div(".notice.state-look", role="status")[h.p[when, " UTC is yet to come."]]
    then = view.then
    if then is not None:
        ran = then.ran is not None and then.ran <= view.asked
        what = " it ran on " if ran else " it was being built on "
        return h.div(class_=f"notice state-{'ok' if ran else 'note'}", role="status")[
            h.p["On ", when, " UTC", what, h.strong[_host(then)], "."]
        ]
    first = view.history.actions[0].started_at if view.history.actions else None
    before = first is not None and view.asked < first
    why = " it did not exist yet." if before else " it was on no host."
    return h.div(".notice.state-off", role="status")[h.p["On ", when, " UTC", why]]


def _stay(stay: HostStay, view: InstanceView) -> h.Element:
    result = {"built": "Ran", "failed": "Build failed", "abandoned": "Deleted before it ran"}
    words = result.get(stay.result or "", "Is being built")
    if stay.result == "built" and stay.ended is None:
        words = "Runs"
    lasted = h.span(".muted.nowrap")[f"({duration((stay.ended or view.now) - stay.began)})"]
    return h.tr(aria_selected="true" if view.then == stay else None)[
        h.th(scope="row")[weekday_moment(stay.began)],
        cell(
            "Until",
            weekday_moment(stay.ended) if stay.ended else "now",
            " ",
            lasted,
        ),
        cell("Host", _host(stay)),
        cell("Cell", cell_link(stay.cell)),
        cell(
            "Result",
            words,
            stay.run and [" ", h.a(href=addresses.decision(stay.run))["Why there"]],
            stay.reason and h.div(".muted.clamp", title=stay.reason)[h.bdi[stay.reason]],
        ),
    ]


def _host(stay: HostStay) -> h.Node:
    return "a host" if stay.host is None else host_link(stay.host, stay.node)


def _history(view: InstanceView) -> h.Element:
    return h.section(".card", aria_labelledby="history")[
        h.div(".section-head")[h.h2("#history")["History"], h.span(".muted")["the last action first"]],
        history_timeline(view.history),
    ]


def _facts(view: InstanceView, viewing: Viewing) -> h.Element:
    history, instance = view.history, view.instance
    shown: list[tuple[str, h.Node]] = [("State", state_mark(instance_state(view.state)))]
    if instance is not None and instance.host:
        shown.append(("Host", host_link(instance.host, instance.node)))
    of_cell = None if instance is None else instance.cell
    if cell_name := of_cell or history.cell:
        shown.append(("Cell", cell_link(cell_name)))
    if instance is not None and instance.availability_zone:
        shown.append(("Zone", h.bdi[instance.availability_zone]))
    flavor = history.flavor or (None if instance is None else instance.flavor)
    shown += [
        ("Flavor", name(flavor)),
        ("Project", _of_project(history.project_id, viewing)),
        ("User", name(history.user_id)),
        ("Request", _request(history.request_id)),
    ]
    if instance is not None:
        shown.append(("Attempts", f"{instance.attempt}"))
        shown.append(("Changed", moment(instance.changed_at)))
        if instance.run:
            shown.append(("Placed by", h.a(href=addresses.decision(instance.run))["its decision"]))
    shown.append(("UUID", h.bdi(".mono")[view.uuid]))
    return h.section(".card", aria_labelledby="facts")[
        h.h2("#facts")["Facts" if viewing.at is None else "Facts now"],
        h.dl(".facts")[[(h.dt[title], h.dd[value]) for title, value in shown]],
        viewing.operator
        and h.p[h.a(href=addresses.with_query(addresses.EVENTS, instance=view.uuid))["Its events"]],
    ]


def _of_project(project: str, viewing: Viewing) -> h.Node:
    if not viewing.operator:
        return name(project)
    return h.a(href=addresses.with_query(addresses.INSTANCES, project=project))[h.bdi[project]]


def _request(request_id: str) -> h.Node:
    if not request_id:
        return "–"
    return h.a(".mono.name", href=addresses.with_query(addresses.INSTANCES, search=request_id, by="request"))[
        h.bdi[request_id]
    ]


def _claim(view: InstanceView) -> h.Node:
    if view.claim_missing is not None:
        words = f"What it held then is not known: {view.claim_missing}."
    elif not view.claim:
        return None
    else:
        held = "holds" if view.asked is None else "held then"
        words = f"The amounts that it {held} in placement, by provider."
    return h.section(".card", aria_labelledby="claim")[
        h.h2("#claim")["Claim" if view.asked is None else "Claim then"],
        h.p(".muted")[words],
        [_provider(each) for each in view.claim],
    ]


def _provider(part: ProviderClaim) -> h.Node:
    return h.div(".box")[
        h.div(".box-title")[h.bdi(".name")[part.name or part.provider]],
        h.dl(".facts")[
            [(h.dt[h.bdi[resource]], h.dd[amount(resource, used)]) for resource, used in part.amounts.items()]
        ],
    ]


def _local(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}"


INSTANCE: Final = Page(
    f"{addresses.INSTANCES}/{{uuid}}",
    Rule("conductor:instances:history", all_projects="conductor:instances:all_projects"),
    instance_view,
    unless_absent("Instance", _instance),
    lambda view: f"{getattr(view, 'name', None) or getattr(view, 'uuid', 'Instance')}",
    here=addresses.INSTANCES,
    query=TimedQuery,
)

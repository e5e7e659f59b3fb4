"""Cells and processes as HTML."""

from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.actions.links import word_links
from roost.dashboard.html.bars import bar
from roost.dashboard.html.lists import cell, empty, table
from roost.dashboard.html.live import live_region
from roost.dashboard.html.places import cell_link, instance_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.states import instance_state, place_state, state_mark
from roost.dashboard.html.times import duration, weekday_moment
from roost.dashboard.html.values import counted, moment, name, number
from roost.dashboard.page import Page
from roost.dashboard.pages.absence import unless_absent
from roost.dashboard.service import FLEET_RULE
from roost.dashboard.views.cells import (
    AuditPart,
    CellsView,
    DatabaseRow,
    FeatureRow,
    ListedCell,
    ProcessRow,
    cells_view,
)
from roost.state.api_database.audit import DONE, AuditFinding, Repair
from roost.state.api_database.cell_mappings import CELL0
from roost.web.policy import Rule

_TITLE = "Cells and processes"

_BEHIND_SECONDS = 5.0
"""Seconds of lag behind the ledger from which the mark says it."""

_SLOW_MILLISECONDS = 500.0
"""Milliseconds of an answer from which the mark says it."""


def _cells(view: CellsView, viewing: Viewing) -> h.Node:
    return live_region(
        viewing,
        "cells",
        page_head(_TITLE, _lead(view)),
        _list(view, viewing),
        _processes(view),
        h.div(".grid.two")[_databases(view), _features(view)],
        _audit(view.audit),
        topic="tick events",
        pause=5_000,
    )


def _lead(view: CellsView) -> h.Node:
    cells = [each for each in view.cells if each.name != CELL0]
    up = sum(each.state == "up" for each in cells)
    hosts, hosts_up = sum(each.hosts for each in cells), sum(each.hosts_up for each in cells)
    processes = sum(each.state == "up" for each in view.processes)
    return (
        f"{number(up)} of {number(len(cells))} cells up, {number(hosts_up)} of {number(hosts)} hosts up, "
        f"{number(processes)} of {number(len(view.processes))} processes up."
    )


def _list(view: CellsView, viewing: Viewing) -> h.Element:
    heads: list[h.Node] = ["Cell", "State", "Hosts up", "Instances", "New instances", "Conductors"]
    heads.append(h.th(scope="col")[h.span(".visually-hidden")["Actions"]])
    return h.section(".card.flush", aria_labelledby="list")[
        h.div(".section-head")[h.h2("#list")["Cells"]],
        table("Cells", heads, [_row(each, viewing) for each in view.cells]),
    ]


def _row(each: ListedCell, viewing: Viewing) -> h.Element:
    is_cell0 = each.name == CELL0
    hosts_address = addresses.with_query(addresses.HOSTS, cell=each.name)
    hosts: h.Node = h.span(".muted")["no hosts"]
    if each.hosts:
        up = 100 * each.hosts_up / each.hosts
        hosts = h.div(".bar-line")[
            h.span(".num.nowrap")[
                h.a(href=hosts_address)[number(each.hosts_up)], f" of {number(each.hosts)}"
            ],
            bar([(up, "bar-ok"), (100 - up, "bar-fails")], ""),
        ]
    return h.tr(id=f"cell-{each.name}")[
        h.th(scope="row")[
            h.bdi(".name")[each.name],
            is_cell0 and h.div(".muted")["keeps what could not be placed"],
        ],
        cell("State", state_mark(place_state(each.state))),
        cell("Hosts up", None if is_cell0 else hosts),
        cell("Instances", _instances(each)),
        cell("New instances", None if is_cell0 else _new_instances(each)),
        cell("Conductors", None if is_cell0 else number(each.conductors)),
        h.td[
            None
            if is_cell0
            else h.div(".button-row")[word_links(viewing, each.enabled, cell=each.name, small=True)]
        ],
    ]


def _instances(each: ListedCell) -> h.Node:
    if each.instances is None:
        return h.span(".state-look")["Not known"]
    total = sum(each.instances.values())
    if not total:
        return h.span(".muted")["none"]
    parts = [
        h.a(".nowrap", href=addresses.with_query(addresses.INSTANCES, cell=each.name, state=state))[
            h.span(class_=f"state-{instance_state(state).mark}")[f"{number(count)} {state}"]
        ]
        for state, count in each.instances.items()
    ]
    return h.div(".chips")[parts]


def _new_instances(each: ListedCell) -> h.Node:
    if each.enabled is None:
        return h.span(".state-look")["Not known"]
    if each.enabled:
        return h.span(".state-ok")["Yes"]
    return h.div[
        h.span(".state-off")["No, disabled"],
        each.reason and h.div(".muted.clamp", title=each.reason)[h.bdi[each.reason]],
        each.said_at is not None and h.div(".muted")["since ", moment(each.said_at)],
    ]


def _processes(view: CellsView) -> h.Element:
    heads: list[h.Node] = ["Process", "State", "Kind", "Machine", "Cell", "Since (UTC)"]
    heads += [h.th(".num", scope="col")[each] for each in ("Version", "Holders")]
    return h.section(".card.flush", aria_labelledby="processes")[
        h.div(".section-head")[
            h.h2("#processes")["Processes"],
            h.a(href=addresses.with_query(addresses.EVENTS, about="machines"))["When they came and went"],
        ],
        table("Processes", heads, [_process(each) for each in view.processes])
        if view.processes
        else empty("No process has a lease", "Conductors appear here when they have begun."),
        h.p(".card-part.muted")["The agents of hosts are processes too: they are counted with their cells."],
    ]


def _process(each: ProcessRow) -> h.Element:
    return h.tr[
        h.th(scope="row")[h.bdi(".name")[each.name]],
        cell("State", state_mark(place_state(each.state))),
        cell("Kind", h.bdi[each.kind]),
        cell("Machine", name(each.host)),
        cell("Cell", cell_link(each.cell) if each.cell is not None else h.span(".muted")["API database"]),
        cell("Since", moment(each.since)),
        cell("Version", number(each.version), numeric=True),
        cell("Holders", h.span(title=each.holder)[number(each.epoch)], numeric=True),
    ]


def _databases(view: CellsView) -> h.Element:
    ledger = view.ledger
    rows = [_database(each) for each in view.databases]
    if ledger is not None:
        behind = ledger.lag_seconds >= _BEHIND_SECONDS
        lag: h.Node = h.span(".state-ok")["At the head"]
        if ledger.lag_commits:
            lag = h.span(class_=f"state-{'look' if behind else 'note'}")[
                f"{number(ledger.lag_commits)} commits, {duration(ledger.lag_seconds)} behind"
            ]
        head = h.tr[
            h.th(scope="row")["Ledger"],
            cell("Now", lag),
            cell("More", f"commit {number(ledger.version)} of {number(ledger.head)}"),
        ]
        rows.insert(0, head)
    return h.section(".card.flush", aria_labelledby="databases")[
        h.div(".section-head")[
            h.h2("#databases")["Databases"], h.span(".muted")["as this process sees them"]
        ],
        table("Databases", ["Database", "Now", "More"], rows),
    ]


def _database(each: DatabaseRow) -> h.Element:
    if each.milliseconds is None:
        answer = h.span(".state-fails")["Does not answer"]
    else:
        slow = each.milliseconds >= _SLOW_MILLISECONDS
        answer = h.span(class_=f"state-{'look' if slow else 'ok'}")[
            f"Answers in {duration(each.milliseconds / 1000)}"
        ]
    return h.tr[
        h.th(scope="row")[h.bdi[each.name]],
        cell("Now", answer),
        cell("More", each.waiting and "changes are being numbered"),
    ]


def _features(view: CellsView) -> h.Element:
    held = [each for each in view.features if each.held_back_by]
    return h.section(".card", aria_labelledby="features")[
        h.div(".section-head")[
            h.h2("#features")["Features"],
            h.span(".muted")[f"{number(len(held))} held back" if held else "all are on"],
        ],
        h.ul[[_feature(each) for each in view.features]],
    ]


def _feature(each: FeatureRow) -> h.Element:
    if not each.held_back_by:
        return h.li[h.span(".state-ok")[each.name], h.span(".muted")[f": {each.what}"]]
    named = [[", " if index else None, h.bdi[name]] for index, name in enumerate(each.named)]
    more = each.held_back_by - len(each.named)
    return h.li[
        h.span(".state-look")[each.name],
        h.span(".muted")[f": {each.what} once all processes have service version {each.since}. "],
        f"Held back by {number(each.held_back_by)}: ",
        named,
        more > 0 and f" and {number(more)} more",
    ]


def _audit(audit: AuditPart) -> h.Element:
    running = audit.running and "; a round is under way"
    last: h.Node = "No round has ended yet"
    if audit.round:
        last = [f"Round {number(audit.round)} ended ", weekday_moment(audit.ended_at)]
    return h.section(".card.flush", aria_labelledby="audit")[
        h.div(".section-head")[h.h2("#audit")["Audit"], h.span(".muted")[last, running]],
        h.div(".card-part")[
            _verdict(audit),
            audit.asks and h.div(".notice.state-look")[h.p[h.bdi[audit.asks]]],
            [
                h.div(".notice.state-look")[h.p["Cell ", h.bdi[unread], " could not be read: ", h.bdi[why]]]
                for unread, why in audit.unread.items()
            ],
        ],
        bool(audit.findings)
        and table(
            "Findings",
            ["Instance or node", "Contradiction", "Should be", "Repair"],
            [_finding(each) for each in audit.findings],
        ),
        bool(audit.repairs)
        and h.details(".card-part")[
            h.summary[f"The last {number(len(audit.repairs))} repairs"],
            table(
                "Repairs",
                ["When (UTC)", "Instance or node", "Repair", "Result", "By"],
                [_repair(each) for each in audit.repairs],
            ),
        ],
    ]


def _verdict(audit: AuditPart) -> h.Node:
    if not audit.round:
        return h.p(".muted")["The audit compares instances, claims and hosts in rounds, and repairs."]
    compared = f"{counted(audit.instances, 'instance was', 'instances were')} compared"
    if not audit.found:
        return h.p[h.span(".state-ok")["No contradictions"], f": {compared}."]
    more = audit.found - len(audit.findings)
    shown = f"; {number(more)} more than shown" if more > 0 else ""
    return h.p[h.span(".state-look")[counted(audit.found, "contradiction")], f": {compared}{shown}."]


def _finding(each: AuditFinding) -> h.Element:
    return h.tr[
        h.th(scope="row")[instance_link(each.subject)],
        cell(
            "Contradiction",
            h.strong[h.bdi[each.kind]],
            h.div(".clamp", title=each.detail)[h.bdi[each.detail]],
        ),
        cell("Should be", h.bdi[each.expected]),
        cell(
            "Repair",
            h.bdi[each.action] if each.action else h.span(".muted")["none is certain"],
            each.waits_for and h.div(".muted")[h.bdi[each.waits_for]],
        ),
    ]


def _repair(each: Repair) -> h.Element:
    done = each.result == DONE
    mark = "note" if each.result is None else "ok" if done else "look"
    words = "under way" if each.result is None else "done" if done else each.result
    return h.tr[
        h.th(scope="row")[moment(each.at)],
        cell("Instance or node", instance_link(each.finding.subject)),
        cell("Repair", name(each.finding.action), h.div(".muted")[h.bdi[each.finding.kind]]),
        cell("Result", h.span(class_=f"state-{mark}")[h.bdi[words]]),
        cell("By", name(each.by)),
    ]


CELLS: Final = Page(
    addresses.CELLS,
    Rule(FLEET_RULE),
    cells_view,
    unless_absent(_TITLE, _cells),
    lambda _: _TITLE,
    here=addresses.CELLS,
    kept_seconds=1.0,
)

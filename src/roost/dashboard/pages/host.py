"""A host as HTML."""

from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.actions.links import word_links
from roost.dashboard.fleet.hosts import class_rank
from roost.dashboard.html.lists import cell, empty, numbered_pager, table
from roost.dashboard.html.live import live_region
from roost.dashboard.html.places import instance_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.values import amount, moment, name, number, text_of_moment
from roost.dashboard.page import Page
from roost.dashboard.pages.host_hardware import hardware_section
from roost.dashboard.pages.host_history import attempts_section, events_section
from roost.dashboard.pages.host_tree import tree_section, use_section
from roost.dashboard.pages.hosts import MARKS
from roost.dashboard.service import FLEET_RULE
from roost.dashboard.views.host import HostPageQuery, HostPageView, PastOfHost, WhyDisabled
from roost.dashboard.views.host_holders import HOLDERS_ON_A_PAGE, Holder
from roost.dashboard.views.host_past import host_shown
from roost.web.policy import Rule

_DISABLED: Final = {
    "cell": "Its cell is disabled",
    "host": "It is disabled",
    "node": "Its node is disabled",
    "agent": "Its agent says that it takes no instances",
}


def _host(view: HostPageView, viewing: Viewing) -> h.Node:
    if view.past is not None:
        return _past(view, view.past)
    return live_region(
        viewing,
        "host",
        page_head(view.name, _lead(view), crumbs=_crumbs(view), actions=_actions(view, viewing)),
        _notices(view),
        h.div(".grid.side")[
            h.div(".grid")[use_section(view), hardware_section(view)],
            h.div(".grid")[_facts(view), _aggregates(view)],
        ],
        tree_section(view),
        _holders(view),
        h.div(".grid.two")[attempts_section(view), events_section(view)],
        pause=5_000,
    )


def _past(view: HostPageView, past: PastOfHost) -> h.Node:
    """The host as of a moment. The links lead to the commits that changed it."""
    here = addresses.host(view.node)
    links = [
        h.a(".button", href=addresses.with_query(here, at=commit))[text]
        for text, commit in (
            ("Its change before", None if past.previous is None else past.previous - 1),
            ("Its next change", past.next),
        )
        if commit is not None
    ]
    lead = f"Its providers and consumers as of commit {number(view.version or 0)}."
    return h.div(".region")[
        page_head(view.name, lead, crumbs=_crumbs(view), actions=links),
        h.div(".grid.side")[h.div[use_section(view)], h.div[_facts(view)]],
        tree_section(view),
        _holders(view),
        h.p(".muted")["State, hardware and reports of its agent are not kept: its page of now has them."],
    ]


def _crumbs(view: HostPageView) -> tuple[tuple[str, str], ...]:
    at = view.at_asked
    trail = [("Hosts", addresses.with_query(addresses.HOSTS, at=at))]
    if view.zone:
        trail.append((view.zone, addresses.with_query(addresses.HOSTS, zone=view.zone, at=at)))
    if view.rack:
        of_rack = addresses.with_query(addresses.HOSTS, zone=view.zone, rack=view.rack, at=at)
        trail.append((view.rack, of_rack))
    return tuple(trail)


def _lead(view: HostPageView) -> h.Node:
    if view.state is None:
        return h.span(".state-look")["No agent reports this provider: it is in placement alone."]
    parts: list[h.Node] = [h.span(class_=f"state-{MARKS[view.state]}")[view.state.capitalize()]]
    if view.last_seen is not None:
        parts += [", last heard of ", moment(view.last_seen)]
    elif view.session is not None and view.state != "down":
        parts += [", its agent has reported since ", moment(view.session)]
    if view.cell:
        parts += [", cell ", h.a(href=addresses.CELLS)[name(view.cell)]]
    return parts


def _actions(view: HostPageView, viewing: Viewing) -> list[h.Node]:
    actions: list[h.Node] = []
    if view.position is not None:
        actions.append(h.a(".button", href=addresses.with_query(addresses.MAP, host=view.node))["On the map"])
    if view.cell:
        enabled = None if view.silent_cell else all(each.subject != "host" for each in view.why)
        actions.append(word_links(viewing, enabled, cell=view.cell, host=view.name))
    return actions


def _notices(view: HostPageView) -> h.Node:
    notices: list[h.Node] = []
    if view.state == "down":
        notices.append(
            _notice(
                "fails",
                "Its agent is silent: the host gets no new instances, and what runs on it is not known.",
            )
        )
    notices += [_notice("off", *_why(each)) for each in view.why]
    if view.held:
        notices.append(_notice("look", "Its agent carries out no orders: ", h.bdi[view.held]))
    refused = view.refused or (None if view.report is None else view.report.refused)
    if refused:
        notices.append(_notice("look", "Not all of its reports are taken: ", h.bdi[refused]))
    if view.silent_cell:
        notices.append(
            _notice(
                "look",
                f"Cell {view.cell} does not answer: the words of operators and the session are not known.",
            )
        )
    if view.version is not None and view.tree is None:
        notices.append(
            _notice("look", "Placement has no provider of this host, so nothing can be placed on it.")
        )
    notices += [
        _notice("look", f"{part.capitalize()} cannot be read: {why}") for part, why in view.unknown.items()
    ]
    return notices


def _notice(level: str, *words: h.Node) -> h.Node:
    return h.div(class_=f"notice state-{level}")[h.p[words]]


def _why(each: WhyDisabled) -> list[h.Node]:
    words: list[h.Node] = [
        "Its agent says that it takes no instances"
        if each.subject == "agent"
        else f"Its {each.subject} is disabled"
        if each.subject != "host"
        else "It is disabled"
    ]
    if each.by:
        words += [" by ", h.bdi[each.by]]
    if each.at is not None:
        words += [" since ", moment(each.at)]
    if each.reason:
        words += [": ", h.bdi[each.reason]]
    return words


def _facts(view: HostPageView) -> h.Node:
    report = view.report
    facts: list[tuple[str, h.Node]] = [("Root provider", h.span(".mono.name")[view.node])]
    if view.nodename:
        facts.append(("Node", name(view.nodename)))
    if view.zone:
        facts.append(("Zone", name(view.zone)))
        facts.append(("Rack", name(view.rack) if view.rack else h.span(".muted")["in no rack"]))
        facts.append(("Cell", name(view.cell) if view.cell else h.span(".muted")["without a cell"]))
    if report is not None and view.cell:
        facts.append(("Instances", number(report.num_instances)))
        if report.hypervisor_type:
            facts.append(("Hypervisor", f"{report.hypervisor_type} {report.hypervisor_version or ''}"))
        if report.host_ip:
            facts.append(("Address", h.span(".mono")[report.host_ip]))
        if report.free_ram_mb is not None:
            facts.append(("Free memory", amount("MEMORY_MB", report.free_ram_mb)))
        if report.free_disk_mb is not None:
            facts.append(("Free disk", amount("MEMORY_MB", report.free_disk_mb)))
        facts.append(("I/O operations", number(report.num_io_ops)))
        facts.append(("Failed builds in a row", number(report.failed_builds)))
        if report.images:
            facts.append(("Cached images", number(len(report.images))))
        if report.service_version:
            facts.append(("Version of the agent", number(report.service_version)))
    if view.session is not None:
        facts.append(("Session since", text_of_moment(view.session)))
    return h.section(".card", aria_labelledby="facts")[
        h.h2("#facts")["Facts"],
        h.dl(".facts")[[(h.dt[label], h.dd[value]) for label, value in facts]],
        None
        if report is not None or view.state is not None or view.past is not None
        else h.p(".muted")["Nothing but placement's data is known."],
    ]


def _aggregates(view: HostPageView) -> h.Node:
    if not view.aggregates:
        return None
    return h.section(".card", aria_labelledby="aggregates")[
        h.h2("#aggregates")["Host aggregates"],
        h.dl(".facts")[
            [
                (
                    h.dt[
                        h.a(href=addresses.with_query(addresses.HOSTS, aggregate=each.name))[name(each.name)]
                    ],
                    h.dd[
                        [
                            (" " if place else "", h.span(".chip")[h.bdi[f"{key}={value}"]])
                            for place, (key, value) in enumerate(sorted(each.metadata.items()))
                        ]
                    ],
                )
                for each in view.aggregates
            ]
        ],
    ]


def _holders(view: HostPageView) -> h.Node:
    if view.holders is None:
        return None
    holders = view.holders
    providers = {each.uuid: each.name for each in (() if view.tree is None else view.tree.providers)}
    if not holders.total:
        return h.section(".card")[empty("Nobody holds anything here")]
    rows = [_holder_row(each, providers, view.names) for each in holders.holders]
    return h.section("#consumers.card.flush", aria_labelledby="consumers-title")[
        h.div(".section-head")[
            h.h2("#consumers-title")["Who holds what"], h.span(".muted.num")[number(holders.total)]
        ],
        table("Who holds what", ["Consumer", "Type", "Project", "Holds"], rows),
        numbered_pager(
            "consumers",
            holders.total,
            holders.page,
            HOLDERS_ON_A_PAGE,
            lambda page: addresses.with_query(addresses.host(view.node), page=page, at=view.at_asked),
            label="Pages of consumers",
        ),
    ]


def _holder_row(holder: Holder, providers: dict[str, str], names: dict[str, str]) -> h.Element:
    elsewhere = 0
    held: list[h.Node] = []
    for provider, resources in holder.holds.items():
        if provider not in providers:
            elsewhere += 1
            continue
        amounts = ", ".join(
            f"{each} {amount(each, resources[each])}" for each in sorted(resources, key=class_rank)
        )
        of = "" if len(providers) == 1 else providers[provider]
        held.append(h.div[of and h.span(".muted")[name(of), ": "], amounts])
    if elsewhere:
        held.append(h.div(".muted")[f"and something of {number(elsewhere)} providers elsewhere"])
    return h.tr[
        h.th(scope="row", data_label="Consumer")[instance_link(holder.consumer, names.get(holder.consumer))],
        cell("Type", holder.kind.lower()),
        cell("Project", name(holder.project_id)),
        cell("Holds", held),
    ]


HOST: Final = Page(
    f"{addresses.HOSTS}/{{uuid}}",
    Rule(FLEET_RULE),
    host_shown,
    _host,
    lambda view: view.name,
    here=addresses.HOSTS,
    query=HostPageQuery,
)

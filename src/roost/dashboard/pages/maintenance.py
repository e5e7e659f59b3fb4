"""A maintenance as HTML: how far it is, and its hosts."""

from typing import Final

import htpy as h

from roost.conductor.maintenance.types import ShownMaintainedHost
from roost.dashboard import addresses
from roost.dashboard.actions.links import finish_link, maintenance_links
from roost.dashboard.html.lists import cell, empty, pager, table
from roost.dashboard.html.live import live_region
from roost.dashboard.html.maintenances import maintenance_facts
from roost.dashboard.html.places import cell_link, host_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.states import host_in_maintenance_state, state_mark
from roost.dashboard.html.values import counted, moment, number
from roost.dashboard.page import Page
from roost.dashboard.pages.absence import unless_absent
from roost.dashboard.views.maintenance import MaintenanceQuery, MaintenanceView, maintenance_view
from roost.model.maintenance import HostState
from roost.web.policy import Rule


def _maintenance(view: MaintenanceView, viewing: Viewing) -> h.Node:
    maintenance = view.maintenance
    return live_region(
        viewing,
        "maintenance",
        page_head(
            ["Maintenance ", h.bdi(".mono")[maintenance.uuid[:8]]],
            crumbs=(("Maintenances", addresses.MAINTENANCES),),
        ),
        h.section(".card", aria_labelledby="now")[
            h.div(".section-head")[
                h.h2("#now")["How far it is"],
                h.a(href=addresses.with_query(addresses.EVENTS, about="operators"))["Events of operators"],
            ],
            maintenance_facts(maintenance),
            h.div(".button-row")[maintenance_links(viewing, maintenance)],
        ],
        h.section(".card.flush", aria_labelledby="hosts")[
            h.div(".section-head")[h.h2("#hosts")["Hosts"]], _states(view), _hosts(view, viewing)
        ],
        topic="tick events",
        pause=3_000,
    )


def _states(view: MaintenanceView) -> h.Node:
    """The states as tabs, each with the number of its hosts."""
    numbers = view.maintenance.hosts
    shown: list[tuple[str, str | None, int]] = [("All", None, sum(numbers.values()))]
    shown += [(host_in_maintenance_state(each).words, each, count) for each, count in numbers.items()]
    return h.nav(aria_label="States")[
        h.ul(".tabs")[
            [
                h.li[
                    h.a(
                        href=_address(view, state=state, marker=None),
                        aria_current="page" if state == view.state else None,
                    )[words, " ", h.span(".num.muted")[number(count)]]
                ]
                for words, state, count in shown
            ]
        ]
    ]


def _hosts(view: MaintenanceView, viewing: Viewing) -> h.Node:
    page = view.hosts
    if not page.hosts:
        return empty("No such hosts", h.a(href=addresses.maintenance(view.maintenance.uuid))["All its hosts"])
    heads: list[h.Node] = ["Host", "State", "Cell", h.th(".num", scope="col")["Wave"], "Hook"]
    heads += ["State since (UTC)", h.th(scope="col")[h.span(".visually-hidden")["Actions"]]]
    first = _address(view, marker=None) if view.marker else None
    following = _address(view, marker=page.next) if page.next else None
    return [
        table("Hosts", heads, [_row(each, view, viewing) for each in page.hosts]),
        pager(len(page.hosts), "on this page, by name", first, following),
    ]


def _row(each: ShownMaintainedHost, view: MaintenanceView, viewing: Viewing) -> h.Element:
    return h.tr[
        h.th(scope="row")[host_link(each.host, view.nodes.get(each.host))],
        cell(
            "State",
            state_mark(host_in_maintenance_state(each.state)),
            each.instances is not None and h.div(".muted")[f"{counted(each.instances, 'instance')} left"],
            each.reason and h.div(".muted.clamp", title=each.reason)[h.bdi[each.reason]],
        ),
        cell("Cell", cell_link(each.cell)),
        cell("Wave", number(each.wave) if each.wave else "–", numeric=True),
        cell("Hook", _hook(each)),
        cell("State since", moment(each.changed_at)),
        h.td[finish_link(viewing, view.maintenance, each.host, each.state)],
    ]


def _hook(each: ShownMaintainedHost) -> h.Node:
    if each.hook is None:
        return h.span(".muted")["under way" if each.calls else "not called"]
    mark, words = ("ok", "Done") if each.hook.failure is None else ("fails", each.hook.failure)
    more = (each.failures > 1 or None) and h.div(".muted")[f"{number(each.failures)} calls failed"]
    output = each.hook.output and h.details[h.summary["Its last lines"], h.pre[h.bdi[each.hook.output]]]
    return h.div[h.span(".clamp", class_=f"state-{mark}", title=words)[h.bdi[words]], more, output]


def _address(view: MaintenanceView, **changed: str | HostState | None) -> str:
    asked = {"state": view.state, "marker": view.marker, **changed}
    return addresses.with_query(addresses.maintenance(view.maintenance.uuid), **asked)


MAINTENANCE: Final = Page(
    f"{addresses.MAINTENANCES}/{{uuid}}",
    Rule("conductor:maintenances:show"),
    maintenance_view,
    unless_absent("Maintenance", _maintenance),
    lambda view: (
        f"Maintenance {view.maintenance.uuid[:8]}" if isinstance(view, MaintenanceView) else "Maintenance"
    ),
    here=addresses.MAINTENANCES,
    query=MaintenanceQuery,
)

"""The list of instances as HTML."""

from typing import Final

import htpy as h

from roost.conductor.instances.types import ShownInstance
from roost.dashboard import addresses
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
from roost.dashboard.html.live import live_region
from roost.dashboard.html.places import cell_link, host_link, instance_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.states import instance_state, state_mark
from roost.dashboard.html.values import counted, moment, name, number
from roost.dashboard.page import Page
from roost.dashboard.pages.absence import unless_absent
from roost.dashboard.views.instances import (
    INSTANCE_STATES,
    InstanceListQuery,
    InstancesView,
    instances_view,
    present_states,
)
from roost.state.api_database.cell_mappings import CELL0
from roost.web.policy import Rule

_TITLE = "Instances"
_SOUGHT = {"name": "named", "uuid": "whose uuid begins with", "request": "of request"}


def _instances(view: InstancesView, viewing: Viewing) -> h.Node:
    return [
        page_head(_TITLE, _lead(view)),
        h.section(".card.flush", aria_label="The list")[
            view.all_projects and live_region(viewing, "states", _states(view), topic="events", pause=10_000),
            _form(view),
            live_region(viewing, "list", *_list(view), topic="events", pause=10_000),
        ],
    ]


def _lead(view: InstancesView) -> h.Node:
    if not view.all_projects:
        return "The instances of your project."
    cells = sum(each != CELL0 for each in view.cells)
    instances = counted(sum(view.total.values()), "instance")
    return f"{instances} of all projects, in {counted(cells, 'cell')}."


def _states(view: InstancesView) -> h.Node:
    """The states as tabs, each with the number of its instances."""
    total = sum(view.total.values())
    shown: list[tuple[str, str | None, int]] = [("All", None, total)]
    shown += [(instance_state(each).words, each, view.total[each]) for each in present_states(view.total)]
    if view.state is not None and view.state not in view.total:
        shown.append((instance_state(view.state).words, view.state, 0))
    return h.nav(aria_label="States")[
        h.ul(".tabs")[
            [
                h.li[
                    h.a(
                        href=addresses.with_query(addresses.INSTANCES, state=state),
                        aria_current="page" if state == view.state else None,
                    )[words, " ", h.span(".num.muted")[number(count)]]
                ]
                for words, state, count in shown
            ]
        ]
    ]


def _form(view: InstancesView) -> h.Node:
    states = [(each, instance_state(each).words) for each in INSTANCE_STATES]
    return search_form(
        addresses.INSTANCES,
        search_field("search", "Name, uuid or request", view.search, placeholder="web-7, 3f0a…, req-…"),
        choice_field("state", "State", view.state, states, every="Any state"),
        view.all_projects
        and [
            choice_field("cell", "Cell", view.cell, [(each, each) for each in view.cells], every="All cells"),
            text_field("host", "Host", view.host),
            text_field("project", "Project", view.project),
        ],
    )


def _list(view: InstancesView) -> list[h.Node]:
    page = view.page
    silent = (
        page.cells_down
        and h.div(".notice.state-look")[
            h.p[
                "Cells that cannot be asked now: ",
                [[", " if index else None, h.bdi[each]] for index, each in enumerate(page.cells_down)],
                ". Their instances are unknown, or missing in a search by what only their cell knows.",
            ]
        ]
    )
    if not page.instances:
        return [silent, _nothing(view)]
    heads: list[h.Node] = ["Instance", "State"]
    heads += ["Host", "Cell"] if view.all_projects else ["Zone"]
    heads += ["Flavor", "Project", "Changed (UTC)"]
    found = (
        view.search
        and view.by
        and h.p(".card-part.muted")[
            f"Found by {_FIELDS[view.by]}. ", [_instead(view, each) for each in _others(view)]
        ]
    )
    first = _address(view, marker=None) if view.marker else None
    following = _address(view, marker=page.next) if page.next else None
    return [
        silent,
        found,
        table("Instances", heads, [_row(each, view) for each in page.instances]),
        pager(len(page.instances), "on this page, in the order of their uuids", first, following),
    ]


_FIELDS = {"name": "name", "uuid": "the beginning of the uuid", "request": "request"}


def _others(view: InstancesView) -> list[str]:
    return [each for each in _FIELDS if each != view.by]


def _instead(view: InstancesView, by: str) -> h.Node:
    return h.a(href=_address(view, by=by, marker=None))[f"Search by {_FIELDS[by]}"], " "


def _nothing(view: InstancesView) -> h.Node:
    if view.search is None:
        filtered = view.state or view.host or view.cell or view.project or view.marker
        return empty(
            "No such instances" if filtered else "No instances yet",
            filtered and h.a(href=addresses.INSTANCES)["Show all instances"],
        )
    whole = len(view.search) == 36
    return empty(
        "Nothing found",
        ["No instance is ", _SOUGHT[view.by or "name"], " ", h.strong[h.bdi[view.search]], "."],
        whole
        and [
            "Instances that were deleted are not in the list, but their histories are kept for some days: ",
            h.a(href=addresses.instance(view.search))["look for the history of this uuid"],
            ".",
        ],
    )


def _row(each: ShownInstance, view: InstancesView) -> h.Element:
    where: list[h.Node]
    if view.all_projects:
        where = [cell("Host", host_link(each.host, each.node)), cell("Cell", cell_link(each.cell))]
    else:
        where = [cell("Zone", name(each.availability_zone))]
    return h.tr[
        h.th(scope="row")[
            instance_link(each.uuid, each.name),
            each.name and h.div(".muted.mono")[h.bdi[each.uuid]],
        ],
        cell(
            "State",
            h.div[
                state_mark(instance_state(each.state)),
                each.reason and h.div(".muted.clamp", title=each.reason)[h.bdi[each.reason]],
            ],
        ),
        where,
        cell("Flavor", name(each.flavor)),
        cell("Project", name(each.project_id)),
        cell("Changed", moment(each.changed_at), numeric=False),
    ]


def _address(view: InstancesView, **changed: str | None) -> str:
    asked: dict[str, str | None] = {
        "search": view.search,
        "by": view.by if view.search else None,
        "state": view.state,
        "host": view.host,
        "cell": view.cell,
        "project": view.project,
        "marker": view.marker,
    }
    return addresses.with_query(addresses.INSTANCES, **{**asked, **changed})


LIST_RULE: Final = Rule("conductor:instances:list", all_projects="conductor:instances:all_projects")
"""The rule of the list of instances in the conductor's API: who sees it there sees it here."""

INSTANCES: Final = Page(
    addresses.INSTANCES,
    LIST_RULE,
    instances_view,
    unless_absent(_TITLE, _instances),
    lambda _: _TITLE,
    here=addresses.INSTANCES,
    query=InstanceListQuery,
)

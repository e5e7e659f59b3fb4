"""The pages that ask before something is done. They change nothing."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.actions.confirmation import WordConfirmation, word_confirmation
from roost.dashboard.actions.place import PlaceNow
from roost.dashboard.actions.word import VERBS, SubjectQuery, WordVerb
from roost.dashboard.html.places import cell_link, host_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.states import place_state, state_mark
from roost.dashboard.html.values import amount, number
from roost.dashboard.page import Page
from roost.dashboard.pages.absence import unless_absent
from roost.dashboard.service import FLEET_RULE
from roost.web.policy import Rule

WORDS: dict[WordVerb, str] = {"enable": "Enable", "disable": "Disable", "drain": "Drain"}

_REASONS = {
    "disable": "Seen by everyone who opens the place, and in its event.",
    "drain": "Seen by everyone who opens the place, and in its event. Without one it is “it is drained”.",
}


def _word(view: WordConfirmation, viewing: Viewing) -> h.Node:
    place, verb = view.place, view.verb
    fields: list[h.Node] = [
        h.input(type="hidden", name=field, value=value)
        for field, value in (("cell", place.cell), ("host", place.host), ("node", place.node))
        if value
    ]
    if verb != "enable":
        fields.append(
            h.div(".field")[
                h.label(for_="reason")["Reason"],
                h.input(
                    "#reason",
                    name="reason",
                    maxlength="1000",
                    autocomplete="off",
                    aria_describedby="reason-hint",
                ),
                h.p("#reason-hint.hint")[_REASONS[verb]],
            ]
        )
    if verb == "drain":
        fields.append(
            h.div(".field")[
                h.label[
                    h.input(type="checkbox", name="move", value="on", checked=True), "Move its instances away"
                ]
            ]
        )
    label = f"{WORDS[verb]} {place.kind}"
    kind = "primary" if verb == "enable" else "danger"
    return [
        page_head(
            [f"{WORDS[verb]} {place.kind} ", h.bdi[place.name], "?"],
            crumbs=crumbs_of(place),
        ),
        h.div(".grid.side")[
            question(
                view.will,
                view.user,
                view.hindered,
                addresses.action(verb),
                fields,
                label,
                kind,
                place_address(place),
            ),
            place_card(place),
        ],
    ]


def question(
    will: tuple[str, ...],
    user: str,
    hindered: str | None,
    action: str,
    fields: Sequence[h.Node],
    label: str,
    kind: str,
    back: str,
) -> h.Element:
    """Return what will happen, and the form that does it. ``kind``: of its button. ``back``: an address."""
    return h.section(".card", aria_labelledby="will")[
        h.h2("#will")["What will happen"],
        h.ul(".bullets")[[h.li[h.bdi[each]] for each in will]],
        h.p[
            "It is done as ",
            h.strong[h.bdi[user]],
            ", if the conductor's policy allows it, and recorded with this name.",
        ],
        h.div(".notice.state-note")[h.p[hindered]]
        if hindered is not None
        else h.form(".form", data_post=action)[
            fields,
            h.div(".button-row")[
                h.button(class_=f"button {kind}", type="submit")[label], h.a(".button", href=back)["Cancel"]
            ],
            h.p(".error", data_failed=True, hidden=True, role="alert")[
                "The dashboard gave no answer. It is not known whether this was done: load the page again "
                "and see how it is now."
            ],
        ],
        h.noscript[h.p(".notice.state-look")["Without JavaScript nothing can be done here."]],
    ]


def place_card(place: PlaceNow) -> h.Element:
    """Return a place as it is now."""
    facts: list[tuple[str, h.Node]] = [
        ("Cell", cell_link(place.cell)),
        ("Host", place.host and host_link(place.host, place.root)),
        ("Node", place.node and host_link(place.nodename or place.node, place.node)),
        ("State", state_mark(place_state(place.state))),
        ("New instances", new_instances(place.enabled)),
        ("Because", place.reason and h.bdi[place.reason]),
        ("Hosts", _hosts(place)),
        ("Nodes", place.host and place.node is None and place.nodes is not None and number(place.nodes)),
        ("Instances", _instances(place)),
    ]
    facts += [
        (
            f"Free {each.resource_class}",
            f"{amount(each.resource_class, each.free)} of {amount(each.resource_class, each.capacity)}",
        )
        for each in place.free
    ]
    return h.section(".card", aria_labelledby="now")[
        h.h2("#now")["As it is now"],
        h.dl(".facts")[[(h.dt[title], h.dd[value]) for title, value in facts if value]],
    ]


def crumbs_of(place: PlaceNow) -> tuple[tuple[str, str], ...]:
    """Return the titles and addresses of the pages above those of a place's actions."""
    crumbs = [("Cells", addresses.CELLS), (place.cell, addresses.cell(place.cell))]
    if place.host is not None:
        crumbs.append((place.name, place_address(place)))
    return tuple(crumbs)


def new_instances(enabled: bool | None) -> h.Element:
    """Return whether a place gets new instances."""
    if enabled is None:
        return h.span(".state-look")["Not known"]
    return h.span(".state-ok")["Yes"] if enabled else h.span(".state-off")["No, disabled"]


def place_address(place: PlaceNow) -> str:
    """Return the address of the page of a place."""
    if place.host is None or place.root is None:
        return addresses.cell(place.cell)
    return addresses.host(place.root)


def _hosts(place: PlaceNow) -> h.Node:
    if place.host is not None or place.hosts is None:
        return None
    return f"{number(place.hosts_up or 0)} of {number(place.hosts)} up"


def _instances(place: PlaceNow) -> h.Node:
    if place.instances is None:
        return "not known now"
    if place.node is not None:
        return number(place.instances)
    asked = {"host": place.host, "cell": place.cell}
    return h.a(href=addresses.with_query(addresses.INSTANCES, **asked))[number(place.instances)]


CONFIRMATIONS: Final = tuple(
    Page(
        addresses.action(verb),
        Rule(FLEET_RULE),
        partial(word_confirmation, verb=verb),
        unless_absent(WORDS[verb], _word),
        lambda view: f"{WORDS[view.verb]}?",
        here=addresses.CELLS,
        query=SubjectQuery,
    )
    for verb in VERBS
)
"""The pages that ask before a word."""

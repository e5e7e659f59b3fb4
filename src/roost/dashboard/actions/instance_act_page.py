"""The pages of acts on an instance: the one that asks, and the one that says what became of it."""

from functools import partial
from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.actions.confirmation_page import question
from roost.dashboard.actions.instance_act import (
    ACTS,
    ActVerb,
    InstanceActOutcome,
    InstanceActQuestion,
    InstanceQuery,
    instance_question,
)
from roost.dashboard.actions.outcome_page import outcome_record, outcome_sentence, outcome_words
from roost.dashboard.html.places import host_link, instance_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.states import instance_state, move_state, state_mark
from roost.dashboard.html.values import name
from roost.dashboard.page import Page
from roost.dashboard.pages.absence import unless_absent
from roost.web.policy import Rule

ALL_PROJECTS: Final = "conductor:instances:all_projects"


def _question(view: InstanceActQuestion, viewing: Viewing) -> h.Node:
    instance, move, act = view.instance, view.move, ACTS[view.verb]
    facts: list[tuple[str, h.Node]] = [
        ("Instance", instance_link(instance.uuid, instance.name)),
        ("State", state_mark(instance_state(instance.state))),
        ("Host", instance.host and host_link(instance.host, instance.node)),
        ("Move", None if move is None else state_mark(move_state(move.state))),
        ("Flavor", name(instance.flavor)),
        ("Project", name(instance.project_id)),
        ("User", name(instance.user_id)),
        ("UUID", h.bdi(".mono")[instance.uuid]),
    ]
    return [
        page_head(
            [f"{act.label}: instance ", h.bdi[instance.name or instance.uuid], "?"],
            crumbs=(("Instances", addresses.INSTANCES),),
        ),
        h.div(".grid.side")[
            question(
                view.will,
                view.user,
                view.hindered,
                addresses.action(view.verb),
                _fields(view),
                act.label,
                act.kind,
                addresses.instance(instance.uuid),
            ),
            h.section(".card", aria_labelledby="now")[
                h.h2("#now")["As it is now"],
                h.dl(".facts")[[(h.dt[title], h.dd[value]) for title, value in facts if value]],
            ],
        ],
    ]


def _fields(view: InstanceActQuestion) -> list[h.Node]:
    hidden = {"instance": view.instance.uuid, "move": view.move and view.move.uuid, "key": view.key}
    fields: list[h.Node] = [
        h.input(type="hidden", name=field, value=value) for field, value in hidden.items() if value
    ]
    if view.verb == "migrate":
        fields += [
            h.div(".field")[
                h.label(for_="host")["Host"],
                h.input(
                    "#host", name="host", maxlength="255", autocomplete="off", aria_describedby="host-hint"
                ),
                h.p("#host-hint.hint")["Without one the scheduler chooses."],
            ],
            h.div(".field")[
                h.label[h.input(type="checkbox", name="waits", value="on"), "Wait there to be confirmed"]
            ],
        ]
    return fields


def instance_outcome_html(view: InstanceActOutcome, viewing: Viewing) -> h.Node:
    """Return the page after an act."""
    instance, act = view.instance, ACTS[view.verb]
    shown = view.uuid if instance is None else instance.name or view.uuid
    again = addresses.action(view.verb, instance=view.uuid, key=view.key or None)
    return [
        page_head(
            ["Instance ", h.bdi[shown], outcome_words(view.result, act.done)],
            crumbs=(("Instances", addresses.INSTANCES),),
        ),
        h.section(".card.confirm", aria_labelledby="result")[
            h.h2("#result")["What was done"],
            outcome_sentence(view.result, again, act.follows),
            instance is not None and h.p["Its state now: ", state_mark(instance_state(instance.state))],
            instance is None
            and view.result.result == "done"
            and h.p["Nothing is left of it but its history."],
            outcome_record(view.result, view.user, view.at, None),
            h.div(".button-row")[
                h.a(".button.primary", href=addresses.instance(view.uuid))["To the instance"],
                h.a(".button", href=addresses.INSTANCES)["All instances"],
            ],
        ],
    ]


def _page(verb: ActVerb) -> Page:
    act = ACTS[verb]
    return Page(
        addresses.action(verb),
        Rule(act.rule, all_projects=ALL_PROJECTS),
        partial(instance_question, verb=verb),
        unless_absent(act.label, _question),
        lambda view: f"{ACTS[view.verb].label}?" if isinstance(view, InstanceActQuestion) else act.label,
        here=addresses.INSTANCES,
        query=InstanceQuery,
    )


INSTANCE_QUESTIONS: Final = {verb: _page(verb) for verb in ACTS}
"""The pages that ask, by the act."""

"""The pages of acts on a maintenance: the one that asks, and the one that says what became of it."""

from functools import partial
from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.actions.confirmation_page import question
from roost.dashboard.actions.maintenance_act import (
    MAINTENANCE_ACTS,
    RULE,
    MaintenanceActOutcome,
    MaintenanceActQuery,
    MaintenanceActQuestion,
    MaintenanceVerb,
    maintenance_question,
)
from roost.dashboard.actions.outcome_page import outcome_record, outcome_sentence, outcome_words
from roost.dashboard.html.maintenances import maintenance_facts
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.states import maintenance_state, state_mark
from roost.dashboard.page import Page
from roost.dashboard.pages.absence import unless_absent
from roost.web.policy import Rule

_CRUMBS: Final = (("Maintenances", addresses.MAINTENANCES),)


def _question(view: MaintenanceActQuestion, viewing: Viewing) -> h.Node:
    act, uuid = MAINTENANCE_ACTS[view.verb], view.maintenance.uuid
    hidden = {"maintenance": uuid, "host": view.host}
    fields = [h.input(type="hidden", name=field, value=value) for field, value in hidden.items() if value]
    return [
        page_head([f"{act.label}: ", *_subject(uuid, view.host), "?"], crumbs=_CRUMBS),
        h.div(".grid.side")[
            question(
                view.will,
                view.user,
                view.hindered,
                addresses.action(view.verb),
                fields,
                act.label,
                act.kind,
                addresses.maintenance(uuid),
            ),
            h.section(".card", aria_labelledby="now")[
                h.h2("#now")["As it is now"], maintenance_facts(view.maintenance)
            ],
        ],
    ]


def maintenance_outcome_html(view: MaintenanceActOutcome, viewing: Viewing) -> h.Node:
    """Return the page after an act."""
    act, now = MAINTENANCE_ACTS[view.verb], view.maintenance
    head = [*_subject(view.uuid, view.host), outcome_words(view.result, act.done)]
    return [
        page_head(head, crumbs=_CRUMBS),
        h.section(".card.confirm", aria_labelledby="result")[
            h.h2("#result")["What was done"],
            outcome_sentence(
                view.result,
                addresses.action(view.verb, maintenance=view.uuid, host=view.host),
                act.follows,
            ),
            now is not None and h.p["Its state now: ", state_mark(maintenance_state(now.state))],
            outcome_record(view.result, view.user, view.at, None),
            h.div(".button-row")[
                h.a(".button.primary", href=addresses.maintenance(view.uuid))["To the maintenance"],
                h.a(".button", href=addresses.MAINTENANCES)["All maintenances"],
            ],
        ],
    ]


def _subject(uuid: str, host: str | None) -> list[h.Node]:
    if host is not None:
        return ["host ", h.bdi[host]]
    return ["maintenance ", h.bdi(".mono")[uuid[:8]]]


def _page(verb: MaintenanceVerb) -> Page:
    label = MAINTENANCE_ACTS[verb].label
    return Page(
        addresses.action(verb),
        Rule(RULE),
        partial(maintenance_question, verb=verb),
        unless_absent(label, _question),
        lambda _: f"{label}?",
        here=addresses.MAINTENANCES,
        query=MaintenanceActQuery,
    )


MAINTENANCE_QUESTIONS: Final = {verb: _page(verb) for verb in MAINTENANCE_ACTS}
"""The pages that ask, by the act."""

"""Views of instances, events, cells and actions in which every name is a given text."""

from typing import get_args

import htpy as h

from roost.conductor.events.newest import NewestPage
from roost.conductor.history.types import HistoryEvent, InstanceAction, InstanceHistory
from roost.conductor.instances.types import InstancePage, ShownInstance
from roost.conductor.maintenance.types import (
    MaintainedHostPage,
    MaintenancePage,
    ShownHook,
    ShownMaintainedHost,
    ShownMaintenance,
)
from roost.conductor.moves.types import DescribedMove, ShownMoveStep
from roost.dashboard.actions.confirmation import WordConfirmation
from roost.dashboard.actions.confirmation_page import CONFIRMATIONS
from roost.dashboard.actions.instance_act import ACTS, InstanceActOutcome, InstanceActQuestion
from roost.dashboard.actions.instance_act_page import INSTANCE_QUESTIONS, instance_outcome_html
from roost.dashboard.actions.maintenance_act import (
    MAINTENANCE_ACTS,
    MaintenanceActOutcome,
    MaintenanceActQuestion,
)
from roost.dashboard.actions.maintenance_act_page import MAINTENANCE_QUESTIONS, maintenance_outcome_html
from roost.dashboard.actions.outcome import ActionResult, WordOutcome
from roost.dashboard.actions.outcome_page import word_outcome_html
from roost.dashboard.actions.place import PlaceNow
from roost.dashboard.html.shell import Viewing
from roost.dashboard.pages.cells import CELLS
from roost.dashboard.pages.events import EVENTS
from roost.dashboard.pages.instance import INSTANCE
from roost.dashboard.pages.instances import INSTANCES
from roost.dashboard.pages.maintenance import MAINTENANCE
from roost.dashboard.pages.maintenances import MAINTENANCES
from roost.dashboard.views.cells import (
    AuditPart,
    CellsView,
    DatabaseRow,
    FeatureRow,
    ListedCell,
    ProcessRow,
)
from roost.dashboard.views.events import EventsView
from roost.dashboard.views.host_stays import stays_of
from roost.dashboard.views.instance import InstanceView, ProviderClaim
from roost.dashboard.views.instances import InstancesView
from roost.dashboard.views.maintenance import MaintenanceView
from roost.dashboard.views.maintenances import MaintenancesView
from roost.model.instance import Requester
from roost.model.maintenance import HostState
from roost.model.visibility import seen
from roost.state.api_database.audit import AuditFinding, Repair
from roost.state.api_database.event_types import EVENT_KINDS, CloudEvent


def pages_named(text: str, viewing: Viewing) -> dict[str, h.Node]:
    """Return the content of pages, by what they are."""
    one = instance_view(text)
    word, *_ = CONFIRMATIONS
    shown = shown_instance(text)
    result = ActionResult(result="refused", says=text, status=409, request_id=text)
    event = CloudEvent(at=1.0, kind="host_disabled", cell=text, host=text, detail=text, by=_by(text))
    said = WordOutcome(
        verb="drain",
        result=result,
        user=text,
        at=1.0,
        cell=text,
        host=text,
        node=text,
        place=place(text),
        event=event,
    )
    asked = WordConfirmation(verb="drain", place=place(text), user=text, will=(text,))
    return {
        "instances": INSTANCES.html(instances_view(text), viewing),
        "instance": INSTANCE.html(one, viewing),
        "instance of a project": INSTANCE.html(seen(one), viewing),
        "events": EVENTS.html(events_view(text), viewing),
        "cells": CELLS.html(cells_view(text), viewing),
        "maintenances": MAINTENANCES.html(maintenances_view(text), viewing),
        "maintenance": MAINTENANCE.html(maintenance_view(text), viewing),
        **{
            f"{verb} asked": MAINTENANCE_QUESTIONS[verb].html(
                MaintenanceActQuestion(
                    verb=verb,
                    maintenance=shown_maintenance(text),
                    user=text,
                    will=(text, *act.will(shown_maintenance(text))),
                    host=text,
                ),
                viewing,
            )
            for verb, act in MAINTENANCE_ACTS.items()
        },
        "maintenance acted on": maintenance_outcome_html(
            MaintenanceActOutcome(
                verb="finish-host",
                uuid=text,
                result=result,
                user=text,
                at=1.0,
                maintenance=shown_maintenance(text),
                host=text,
            ),
            viewing,
        ),
        "word": word.html(asked, viewing),
        "word said": word_outcome_html(said, viewing),
        **{
            f"{verb} asked": INSTANCE_QUESTIONS[verb].html(
                InstanceActQuestion(
                    verb=verb,
                    instance=shown,
                    user=text,
                    will=(text, *act.will(shown, described_move(text))),
                    move=described_move(text),
                ),
                viewing,
            )
            for verb, act in ACTS.items()
        },
        "instance acted on": instance_outcome_html(
            InstanceActOutcome(verb="migrate", uuid=text, result=result, user=text, at=1.0, instance=shown),
            viewing,
        ),
    }


def _by(text: str) -> Requester:
    return Requester(text, text, text)


def described_move(text: str) -> DescribedMove:
    """Return a move with one step."""
    named = (
        "uuid",
        "instance",
        "project_id",
        "cell",
        "source_host",
        "source_node",
        "target_host",
        "target_cell",
    )
    named += ("target_node", "requested_host", "flavor", "evidence", "reason", "run", "user_id", "request_id")
    return DescribedMove(
        **dict.fromkeys(named, text),
        kind="migrate",
        state="switched",
        forced=False,
        any_cell=False,
        attempt=2,
        confirm=False,
        began_at=1.0,
        changed_at=1.0,
        steps=[ShownMoveStep("switched", 1.0, text, text)],
        proof="operator",
        proved_by=text,
        proved_at=1.0,
    )


def shown_instance(text: str) -> ShownInstance:
    """Return an instance in error."""
    return ShownInstance(
        uuid=text,
        request_id=text,
        project_id=text,
        user_id=text,
        flavor=text,
        state="error",
        cell=text,
        host=text,
        attempt=1,
        reason=text,
        node=text,
        run=text,
        name=text,
        availability_zone=text,
    )


def instance_view(text: str) -> InstanceView:
    """Return an instance with events of several kinds."""
    created = InstanceAction(
        kind="create",
        started_at=1.0,
        finished_at=2.0,
        result="error",
        user_id=text,
        project_id=text,
        request_id=text,
        reason=text,
    )
    created.events = [
        HistoryEvent(
            name=name,
            started_at=1.0,
            finished_at=2.0,
            result=result,
            reason=text,
            code=text,
            host=text,
            node=text,
            cell=text,
            run=text,
        )
        for name, result in (("schedule", "selected"), ("build", "failed"), ("lose", "lost"), ("claim", None))
    ]
    history = InstanceHistory(
        uuid=text,
        request_id=text,
        project_id=text,
        user_id=text,
        flavor=text,
        state="error",
        cell=text,
        actions=[created],
        missing=[text],
    )
    stays = stays_of(history)
    return InstanceView(
        now=9.0,
        uuid=text,
        instance=shown_instance(text),
        history=history,
        stays=stays,
        claim=(ProviderClaim(provider=text, name=text, amounts={text: 1}),),
        asked=1.5,
        then=stays[0],
        move=described_move(text),
        acts=tuple(ACTS),
    )


def instances_view(text: str) -> InstancesView:
    """Return a list of two instances."""
    return InstancesView(
        at=9.0,
        page=InstancePage([shown_instance(text)] * 2, None, [text]),
        search=text,
        by="name",
        host=text,
        cell=text,
        project=text,
        total={"active": 1},
        cells=(text,),
        all_projects=True,
    )


def events_view(text: str) -> EventsView:
    """Return an event of each kind."""
    names = dict.fromkeys(("cell", "host", "node", "instance", "name", "detail"), text)
    events = [CloudEvent(at=1.0, kind=each, by=_by(text), **names) for each in EVENT_KINDS]  # type: ignore[arg-type]
    page = NewestPage(events=events, until=1.0, skip=2, back_to=1.0, cells_down=[text])
    return EventsView(
        at=9.0, page=page, nodes={text: text}, cells=(text,), host=text, cell=text, instance=text
    )


def shown_maintenance(text: str) -> ShownMaintenance:
    """Return a maintenance with hosts in each state."""
    return ShownMaintenance(
        uuid=text,
        state="paused",
        wave=2,
        hosts=dict.fromkeys(get_args(HostState), 3),
        left=15,
        reason=text,
        reserve=True,
        most_hosts=4,
        keep_going=False,
        began=1.0,
        changed_at=2.0,
        user_id=text,
    )


def maintenances_view(text: str) -> MaintenancesView:
    return MaintenancesView(at=9.0, page=MaintenancePage([shown_maintenance(text)], text))


def maintenance_view(text: str) -> MaintenanceView:
    """Return a maintenance with a host in each state, whose hook has failed."""
    hosts = [
        ShownMaintainedHost(
            host=text,
            cell=text,
            state=state,
            wave=2,
            instances=3,
            calls=2,
            failures=2,
            hook=ShownHook(text, 1, text),
            reason=text,
            changed_at=1.0,
        )
        for state in get_args(HostState)
    ]
    page = MaintainedHostPage(hosts, text)
    return MaintenanceView(at=9.0, maintenance=shown_maintenance(text), hosts=page, nodes={text: text})


def place(text: str) -> PlaceNow:
    """Return a node that is disabled."""
    return PlaceNow(
        cell=text,
        host=text,
        node=text,
        nodename=text,
        root=text,
        enabled=False,
        reason=text,
        instances=3,
        within=text,
    )


def cells_view(text: str) -> CellsView:
    """Return a disabled cell, a process that is down, a feature that is held back, a finding and a repair."""
    finding = AuditFinding(
        kind=text, subject=text, detail=text, expected=text, proof={}, action=text, waits_for=text
    )
    return CellsView(
        at=9.0,
        cells=(
            ListedCell(
                name=text,
                section=text,
                state="up",
                enabled=False,
                reason=text,
                said_at=1.0,
                conductors=1,
                hosts=2,
                hosts_up=1,
                instances={"active": 1, "scheduling": 2},
            ),
        ),
        processes=(
            ProcessRow(
                name=text,
                kind=text,
                host=text,
                cell=text,
                state="down",
                version=1,
                since=1.0,
                holder=text,
                epoch=1,
            ),
        ),
        features=(FeatureRow(name="words", what="words count", since=2, held_back_by=7, named=(text,)),),
        audit=AuditPart(
            round=3,
            running=True,
            ended_at=1.0,
            found=1,
            instances=5,
            unread={text: text},
            asks=text,
            findings=(finding,),
            repairs=(Repair(number=1, at=1.0, by=text, finding=finding, result=text),),
        ),
        databases=(DatabaseRow(name=text, cell=text, milliseconds=None),),
        ledger=None,
    )

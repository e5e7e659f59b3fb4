"""The operations that carry out what a user has confirmed, at the conductor and with the user's own token."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import falcon
import msgspec

from roost.dashboard import addresses
from roost.dashboard.actions.client import UnknownOutcome
from roost.dashboard.actions.confirmation import NOTHING_DOES
from roost.dashboard.actions.instance_act import ACTS, ActVerb, InstanceActOutcome, InstanceForm, request_of
from roost.dashboard.actions.instance_act_page import ALL_PROJECTS, instance_outcome_html
from roost.dashboard.actions.maintenance_act import (
    MAINTENANCE_ACTS,
    RULE,
    MaintenanceActOutcome,
    MaintenanceForm,
    MaintenanceVerb,
    path_of,
)
from roost.dashboard.actions.maintenance_act_page import maintenance_outcome_html
from roost.dashboard.actions.outcome import ActionResult, WordOutcome
from roost.dashboard.actions.outcome_page import title_of_outcome, word_outcome_html
from roost.dashboard.actions.place import PlaceNow, place_now
from roost.dashboard.actions.word import VERBS, WordForm, WordSubject, WordVerb, body_of, event_kind
from roost.dashboard.conventions import wants_json
from roost.dashboard.form import LARGEST_FORM, FormOperation
from roost.dashboard.page import show, viewing_of
from roost.dashboard.service import FLEET_RULE, CloudReads, DashboardService
from roost.dashboard.views.absence import NO_API_DATABASE
from roost.model.visibility import visible
from roost.state.api_database.event_types import CloudEvent, EventsQuery
from roost.storage import StorageError
from roost.web.errors import BadRequest, Conflict, HTTPError, NotFound, Unavailable
from roost.web.policy import Rule
from roost.web.query import LARGEST_PAGE
from roost.web.request import Request, Response

_PLACES: Final = {
    WordOutcome: addresses.CELLS,
    InstanceActOutcome: addresses.INSTANCES,
    MaintenanceActOutcome: addresses.MAINTENANCES,
}
"""The entry of the navigation under which the page after an action is."""

CLOCKS_DIFFER: Final = 120.0
"""Seconds by which the clock of the process that wrote an event may be behind this one's."""


async def say_word(service: DashboardService, req: Request, resp: Response, *, verb: WordVerb) -> None:
    """Enable or disable a cell, a host or a node, and show what became of it."""
    form: WordForm = req.body
    subject = WordSubject.of(form)
    cloud = _cloud(service)
    began = service.clock()
    body = body_of(verb, form.reason, moves=bool(form.move))
    result = await _asked(service, req, "PUT", subject.path, body, subject.query)
    place = await _place(service, cloud, subject)
    event = None
    if result.result == "done" and place is not None:
        event = await _event(cloud, subject, place, verb, began, result.request_id)
    view = WordOutcome(
        verb=verb,
        result=result,
        user=req.identity.user_id,
        at=began,
        cell=place.cell if place is not None else subject.cell,
        host=subject.host,
        node=subject.node,
        place=place,
        event=event,
    )
    _answer(service, req, resp, view, word_outcome_html)


async def act_on_instance(service: DashboardService, req: Request, resp: Response, *, verb: ActVerb) -> None:
    """Do an act on an instance, and show what became of it."""
    form: InstanceForm = req.body
    cloud = _cloud(service)
    began = service.clock()
    method, path, body = request_of(verb, form)
    key = form.key if method == "POST" else ""
    result = await _asked(service, req, method, path, body, {}, key or None)
    uuid = form.instance.lower()
    try:
        found = await cloud.instances.find(uuid)
    except StorageError:
        found = None
    if found is not None and not req.projects.include(found.project_id):
        found = None
    view = InstanceActOutcome(
        verb=verb, uuid=uuid, result=result, user=req.identity.user_id, at=began, instance=found, key=key
    )
    _answer(service, req, resp, visible(view, req.viewer), instance_outcome_html)


async def act_on_maintenance(
    service: DashboardService, req: Request, resp: Response, *, verb: MaintenanceVerb
) -> None:
    """Do an act on a maintenance, and show what became of it."""
    form: MaintenanceForm = req.body
    cloud = _cloud(service)
    if MAINTENANCE_ACTS[verb].of_host != bool(form.host):
        raise BadRequest("host names the host of the act.")
    began = service.clock()
    result = await _asked(service, req, "POST", path_of(verb, form), None, {})
    uuid = form.maintenance.lower()
    try:
        found = await cloud.maintenances.show(uuid)
    except (StorageError, NotFound):
        found = None
    view = MaintenanceActOutcome(
        verb=verb,
        uuid=uuid,
        result=result,
        user=req.identity.user_id,
        at=began,
        maintenance=found,
        host=form.host or None,
    )
    _answer(service, req, resp, view, maintenance_outcome_html)


def _cloud(service: DashboardService) -> CloudReads:
    if service.cloud is None:
        raise NotFound(NO_API_DATABASE)
    return service.cloud


async def _asked(
    service: DashboardService,
    req: Request,
    method: str,
    path: str,
    body: Mapping[str, object] | None,
    query: Mapping[str, str],
    key: str | None = None,
) -> ActionResult:
    """Send a request with the token of the user, and return its result. ``key``: of one that creates."""
    if service.actions is None:
        raise Conflict(NOTHING_DOES)
    session = service.sessions.session(req.headers)
    token = req.get_header("x-auth-token") if session is None else session.token
    try:
        return ActionResult.of(await service.actions.send(token or "", method, path, body, query, key))
    except (UnknownOutcome, Unavailable) as error:
        return ActionResult.of_failure(error)


async def _place(service: DashboardService, cloud: CloudReads, subject: WordSubject) -> PlaceNow | None:
    """Return the place as it is now; None if it cannot be read, which changes nothing of what was done."""
    try:
        return await place_now(service, cloud, subject)
    except (StorageError, HTTPError):
        return None


async def _event(
    cloud: CloudReads,
    subject: WordSubject,
    place: PlaceNow,
    verb: WordVerb,
    began: float,
    request_id: str | None,
) -> CloudEvent | None:
    """Return the event that records a word, which was written with it."""
    query = EventsQuery(
        since=max(0.0, began - CLOCKS_DIFFER),
        kind=event_kind(subject, verb),
        cell=place.cell,
        host=subject.host,
        limit=LARGEST_PAGE,
    )
    try:
        page = await cloud.events.page(query)
    except StorageError:
        return None
    for each in reversed(page.events):
        if each.by is not None and each.by.request_id == request_id and each.node == subject.node:
            return each
    return None


def _answer(
    service: DashboardService,
    req: Request,
    resp: Response,
    view: WordOutcome | InstanceActOutcome | MaintenanceActOutcome,
    html: Any,
) -> None:
    resp.status = view.result.http_status
    if wants_json(req):
        resp.content_type = falcon.MEDIA_JSON
        resp.data = msgspec.json.encode(view)
        return
    viewing = viewing_of(service, req)
    here = _PLACES[type(view)]
    show(resp, viewing, title_of_outcome(view.result), html(view, viewing), here=here)


def _form(path: str, rule: Rule, handler: Any, body: Any) -> FormOperation:
    return FormOperation(
        "POST", path, rule, handler, body=body, takes=(), largest_body=LARGEST_FORM, provides=()
    )


ACTION_OPERATIONS: Final = (
    *(
        _form(addresses.action(verb), Rule(FLEET_RULE), partial(say_word, verb=verb), WordForm)
        for verb in VERBS
    ),
    *(
        _form(
            addresses.action(verb),
            Rule(act.rule, all_projects=ALL_PROJECTS),
            partial(act_on_instance, verb=verb),
            InstanceForm,
        )
        for verb, act in ACTS.items()
    ),
    *(
        _form(addresses.action(verb), Rule(RULE), partial(act_on_maintenance, verb=verb), MaintenanceForm)
        for verb in MAINTENANCE_ACTS
    ),
)
"""The rules here are those of the questions; the policy of the conductor decides what is done."""

"""The acts on a maintenance: paused, resumed, cancelled, and a host of it given back.

The first page of an act says what will happen and changes nothing; its form names the maintenance.
"""

from collections.abc import Callable
from typing import Annotated, Final, Literal, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import Meta

from roost.conductor.maintenance.operations import PATH
from roost.conductor.maintenance.types import ShownMaintenance
from roost.dashboard.actions.confirmation import hindered
from roost.dashboard.actions.outcome import ActionResult
from roost.dashboard.html.values import counted
from roost.dashboard.page import PageQuery
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.views.absence import of_cloud
from roost.model.maintenance import IN_WAVE, IN_WORK, PAUSED, RUNNING, WAITING
from roost.web.errors import BadRequest
from roost.web.query import Uuid
from roost.web.request import Request

MaintenanceVerb = Literal["pause-maintenance", "resume-maintenance", "cancel-maintenance", "finish-host"]

RULE: Final = "conductor:maintenances:update"
"""The policy rule of all acts."""


class MaintenanceAct(NamedTuple):
    """An act. ``label``: of its button. ``kind``: its class. ``path``: of the request, after the maintenance.

    ``states``: of the maintenance, in which it is offered. ``will``: what will happen, a sentence each.
    ``done``: what has happened, after its subject; ``follows``: what comes next. ``of_host``: its subject is
    a host.
    """

    label: str
    kind: Literal["primary", "danger"]
    path: str
    states: tuple[str, ...]
    will: Callable[[ShownMaintenance], tuple[str, ...]]
    done: str
    follows: str
    of_host: bool = False


class MaintenanceActQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The question before an act. ``hindered``: why it cannot be done here."""

    verb: MaintenanceVerb
    maintenance: ShownMaintenance
    user: str
    will: tuple[str, ...]
    host: str | None = None
    hindered: str | None = None


class MaintenanceActOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The page after an act. ``maintenance``: as it is now, None if that cannot be read."""

    verb: MaintenanceVerb
    uuid: str
    result: ActionResult
    user: str
    at: float
    maintenance: ShownMaintenance | None
    host: str | None = None


class MaintenanceActQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The maintenance of an act, and the host."""

    maintenance: Uuid
    host: Annotated[str, Meta(max_length=255)] | None = None


class MaintenanceForm(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The form that does an act."""

    maintenance: Annotated[str, Meta(pattern="^[0-9A-Za-z-]{1,64}$")]
    host: Annotated[str, Meta(max_length=255)] = ""


@of_cloud
async def maintenance_question(
    service: DashboardService, cloud: CloudReads, req: Request, verb: MaintenanceVerb
) -> MaintenanceActQuestion:
    """Return the question before an act. Raises `NotFound`, `BadRequest`."""
    query: MaintenanceActQuery = req.query
    act = MAINTENANCE_ACTS[verb]
    if act.of_host != (query.host is not None):
        raise BadRequest("host names the host of the act." if act.of_host else "The act is of no host.")
    found = await cloud.maintenances.show(query.maintenance)
    reason = hindered(service)
    if reason is None and found.state not in act.states:
        reason = f"This is not possible now: the maintenance is {found.state}."
    return MaintenanceActQuestion(
        verb=verb,
        maintenance=found,
        user=req.identity.user_id,
        will=act.will(found),
        host=query.host,
        hindered=reason,
    )


def acts_on(maintenance: ShownMaintenance) -> tuple[MaintenanceVerb, ...]:
    """Return the acts that are possible on a maintenance as a whole."""
    return tuple(
        verb for verb, act in MAINTENANCE_ACTS.items() if not act.of_host and maintenance.state in act.states
    )


def path_of(verb: MaintenanceVerb, form: MaintenanceForm) -> str:
    """Return the path of the request of an act."""
    path = f"{PATH}/{form.maintenance.lower()}/{MAINTENANCE_ACTS[verb].path}"
    return path.format(host=quote(form.host, safe=""))


def _will_pause(maintenance: ShownMaintenance) -> tuple[str, ...]:
    return (
        "No further move and no call of the hook begins. Those under way go on.",
        "A host whose work is done is given back. The others of the wave stay disabled.",
        "It can be resumed.",
    )


def _will_resume(maintenance: ShownMaintenance) -> tuple[str, ...]:
    return (
        "The hosts of its wave are emptied and worked on again.",
        f"{counted(maintenance.hosts.get(WAITING, 0), 'host waits', 'hosts wait')} for the waves after it.",
    )


def _will_cancel(maintenance: ShownMaintenance) -> tuple[str, ...]:
    given_back = sum(maintenance.hosts.get(state, 0) for state in IN_WAVE)
    return (
        f"No further wave begins. {counted(given_back, 'host')} of the last one "
        f"{'is' if given_back == 1 else 'are'} given back, after calls of the hook that are under way.",
        f"Nothing is done with {counted(maintenance.hosts.get(WAITING, 0), 'host')} that waited for a wave.",
        "Instances that have moved stay where they are. This cannot be undone.",
    )


def _will_finish(maintenance: ShownMaintenance) -> tuple[str, ...]:
    return (
        "The host is given back: it may get new instances again.",
        "A call of the hook for it that is under way is stopped.",
    )


MAINTENANCE_ACTS: Final[dict[MaintenanceVerb, MaintenanceAct]] = {
    "pause-maintenance": MaintenanceAct(
        "Pause",
        "danger",
        "pause",
        (RUNNING,),
        _will_pause,
        "is paused",
        "Moves and calls that are under way end next.",
    ),
    "resume-maintenance": MaintenanceAct(
        "Resume",
        "primary",
        "resume",
        (PAUSED,),
        _will_resume,
        "goes on",
        "Its hosts are emptied and worked on again.",
    ),
    "cancel-maintenance": MaintenanceAct(
        "Cancel",
        "danger",
        "cancel",
        (RUNNING, PAUSED),
        _will_cancel,
        "is being cancelled",
        "The hosts of its wave are given back next.",
    ),
    "finish-host": MaintenanceAct(
        "Work is done",
        "primary",
        "hosts/{host}/done",
        (RUNNING, PAUSED),
        _will_finish,
        "is being given back",
        "It is enabled next.",
        of_host=True,
    ),
}
"""The acts by the verb of their address, in the order of their buttons."""

HOST_STATES: Final = (IN_WORK,)
"""States of hosts that can be given back by an operator's word."""

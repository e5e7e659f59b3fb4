"""The acts on an instance, as stops, moves and its deletion, and what each asks the conductor.

The first page of an act says what will happen and changes nothing; its form names the instance, and the move
that was shown. A request that creates a move has a key: the form that is sent again has it too.
"""

import uuid as uuids
from collections.abc import Callable
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from roost.conductor.instances.operations import PATH as INSTANCES
from roost.conductor.instances.types import ShownInstance
from roost.conductor.moves.operations import PATH as MOVES
from roost.conductor.moves.types import DescribedMove
from roost.dashboard.actions.confirmation import hindered
from roost.dashboard.actions.outcome import ActionResult
from roost.dashboard.html.values import amount
from roost.dashboard.page import PageQuery
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.views.absence import of_cloud
from roost.model.instance import ACTIVE, DELETING, DESTROYED, LOST, SHELVED, STOPPED
from roost.model.move_states import ABORTABLE, SWITCHED, SWITCHING
from roost.model.visibility import seen, seen_by_project
from roost.web.errors import NotFound
from roost.web.query import Uuid
from roost.web.request import Request

ActVerb = Literal[
    "delete",
    "stop",
    "start",
    "shelve",
    "unshelve",
    "migrate",
    "confirm-move",
    "revert-move",
    "abort-move",
]

Will = Callable[[ShownInstance, DescribedMove | None], tuple[str, ...]]


class InstanceAct(NamedTuple):
    """An act. ``label``: of its button. ``kind``: its class. ``rule``: of the policy, which offers it.

    ``method`` and ``path``: the request, with the fields ``uuid`` and ``move``. ``states``: of the instance,
    or with ``of_move`` of its move, in which it is offered; None: in all. ``will``: what will happen, a
    sentence each. ``done``: what has happened, after the name of the instance; ``follows``: what comes next.
    """

    label: str
    kind: Literal["primary", "danger"]
    rule: str
    method: str
    path: str
    states: tuple[str, ...] | None
    will: Will
    done: str
    follows: str
    of_move: bool = False


class InstanceActQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The question before an act. ``move``: the one under way, if the viewer may see it.

    ``key``: of the request, which is sent again with the same. ``hindered``: why it cannot be done here.
    """

    verb: ActVerb
    instance: ShownInstance
    user: str
    will: tuple[str, ...]
    move: DescribedMove | None = None
    key: str = ""
    hindered: str | None = None


class InstanceActOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The page after an act. ``instance``: as it is now, None if nothing is left. ``key``: as before."""

    verb: ActVerb
    uuid: str
    result: ActionResult
    user: str
    at: float
    instance: ShownInstance | None
    key: str = ""


class InstanceQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The instance of an act. ``key``: of a request that was sent before."""

    instance: Uuid
    key: Uuid | None = None


class InstanceForm(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The form that does an act. ``host``: the target of a migration. ``waits``: it waits to be confirmed."""

    instance: Annotated[str, Meta(pattern="^[0-9A-Za-z-]{1,64}$")]
    move: Annotated[str, Meta(pattern="^[0-9A-Za-z-]{0,64}$")] = ""
    key: Annotated[str, Meta(pattern="^[0-9A-Za-z-]{0,64}$")] = ""
    host: Annotated[str, Meta(max_length=255)] = ""
    waits: Literal["", "on"] = ""


@of_cloud
async def instance_question(
    service: DashboardService, cloud: CloudReads, req: Request, verb: ActVerb
) -> InstanceActQuestion:
    """Return the question before an act. Raises `NotFound`: there is no such instance for the viewer."""
    uuid = req.query.instance
    found = await cloud.instances.find(uuid)
    if found is None or not req.projects.include(found.project_id):
        raise NotFound(f"There is no instance {uuid}.")
    move = await move_of(service, cloud, req, found)
    act = ACTS[verb]
    reason = hindered(service)
    if reason is None and not is_offered(act, found, move):
        reason = f"This is not possible now: the instance is {found.state}" + (
            "." if move is None else f", and its move is {move.state}."
        )
    return InstanceActQuestion(
        verb=verb,
        instance=found,
        user=req.identity.user_id,
        will=act.will(found, move),
        move=move,
        key=req.query.key or f"{uuids.uuid4()}",
        hindered=reason,
    )


async def move_of(
    service: DashboardService, cloud: CloudReads, req: Request, instance: ShownInstance | None
) -> DescribedMove | None:
    """Return the move of an instance that is under way; None without one, or if the viewer may not see it."""
    if instance is None or instance.move is None or instance.cell is None:
        return None
    if not service.policy.allows(req.identity, "conductor:moves:show", instance.project_id):
        return None
    return await cloud.moves.find(instance.cell, instance.move)


def offered(
    service: DashboardService, req: Request, instance: ShownInstance | None, move: DescribedMove | None
) -> tuple[ActVerb, ...]:
    """Return the acts that the viewer may do on an instance as it is now."""
    if instance is None:
        return ()
    return tuple(
        verb
        for verb, act in ACTS.items()
        if is_offered(act, instance, move)
        and service.policy.allows(req.identity, act.rule, req.identity.project_id)
    )


def is_offered(act: InstanceAct, instance: ShownInstance, move: DescribedMove | None) -> bool:
    """Return whether an act is possible in the states of an instance and its move."""
    if instance.state in (DELETING, DESTROYED):
        return False
    if act.of_move:
        return move is not None and (act.states is None or move.state in act.states)
    if act is not ACTS["delete"] and instance.move is not None:
        return False
    return act.states is None or instance.state in act.states


def request_of(verb: ActVerb, form: InstanceForm) -> tuple[str, str, dict[str, object] | None]:
    """Return the method, the path and the body of the request of an act."""
    act = ACTS[verb]
    path = act.path.format(uuid=form.instance.lower(), move=form.move.lower() or "none")
    body: dict[str, object] | None = None
    if verb == "migrate":
        body = {"confirm": not form.waits, **({"host": form.host.strip()} if form.host.strip() else {})}
    elif verb == "shelve":
        body = {}
    return act.method, path, body


def _will_delete(instance: ShownInstance, move: DescribedMove | None) -> tuple[str, ...]:
    will = []
    if instance.host is not None:
        will.append(f"Host {instance.host} destroys the guest, with its data on that host.")
    else:
        will.append("The guest is destroyed, if there is one, with its data on its host.")
    if instance.move is not None:
        will.append("Its move ends, and the other host destroys what it has of the guest.")
    for provider in (instance.claim or {}).values():
        amounts = ", ".join(f"{amount(name, used)} {name}" for name, used in sorted(provider.items()))
        will.append(f"Its claim is given back: {amounts}.")
    will.append("This cannot be undone. The deletion is durable when it is answered.")
    will.append("Its history stays for some days, and names you.")
    return tuple(will)


def _will_stop(instance: ShownInstance, move: DescribedMove | None) -> tuple[str, ...]:
    return (
        "Its host stops the guest. What is not written to a disk is lost.",
        "The disks and the claim are kept, so it can be started again there.",
    )


def _will_start(instance: ShownInstance, move: DescribedMove | None) -> tuple[str, ...]:
    return ("Its host starts the guest, with the disks that are there.",)


def _will_shelve(instance: ShownInstance, move: DescribedMove | None) -> tuple[str, ...]:
    return (
        "Its host destroys the guest. What is not written to a disk is lost.",
        "The disks stay in the store that hosts share; without one this is refused, and nothing is changed.",
        "Its claim is given back: others may take the room, and it runs again only if a host has room then.",
    )


def _will_unshelve(instance: ShownInstance, move: DescribedMove | None) -> tuple[str, ...]:
    return (
        "A host of its cell is claimed, and starts the guest with the disks that were kept.",
        "If no host can take it, it stays shelved, with the reason.",
    )


def _will_migrate(instance: ShownInstance, move: DescribedMove | None) -> tuple[str, ...]:
    away = () if instance.state == STOPPED else ("It is away for as long as a stop and a start take.",)
    return (
        "Another host of its cell is claimed, prepares the guest, and starts it once it is stopped here.",
        *away,
        "If no host can take it, or each fails, it stays where it is, and runs on.",
        "Until it is confirmed, both hosts are claimed, and it can be taken back.",
    )


def _will_confirm(instance: ShownInstance, move: DescribedMove | None) -> tuple[str, ...]:
    source = "The host that it left" if move is None else f"Host {move.source_host}"
    return (f"{source} destroys what it keeps of the guest, and its room is free.", "It cannot go back then.")


def _will_revert(instance: ShownInstance, move: DescribedMove | None) -> tuple[str, ...]:
    source = "the host that it left" if move is None else f"host {move.source_host}"
    return (
        f"The guest is stopped here, and started again on {source}.",
        "What was written since the move is on the disks there only if the hosts share them.",
    )


def _will_abort(instance: ShownInstance, move: DescribedMove | None) -> tuple[str, ...]:
    if move is not None and move.state == SWITCHING:
        return ("The instance stays where it is, unless its guest has gone over already.",)
    return ("The instance stays where it is. If its guest was stopped for the move, it is started again.",)


_INSTANCE = f"{INSTANCES}/{{uuid}}"
_MOVE = f"{MOVES}/{{move}}"

ACTS: Final[dict[ActVerb, InstanceAct]] = {
    "stop": InstanceAct(
        "Stop",
        "danger",
        "conductor:instances:stop",
        "POST",
        f"{_INSTANCE}/stop",
        (ACTIVE,),
        _will_stop,
        "is being stopped",
        "The word is durable: the host stops the guest next.",
    ),
    "start": InstanceAct(
        "Start",
        "primary",
        "conductor:instances:start",
        "POST",
        f"{_INSTANCE}/start",
        (STOPPED, LOST),
        _will_start,
        "is being started",
        "The word is durable: the host starts the guest next.",
    ),
    "shelve": InstanceAct(
        "Shelve",
        "danger",
        "conductor:instances:shelve",
        "POST",
        f"{_INSTANCE}/shelve",
        (ACTIVE, STOPPED),
        _will_shelve,
        "is being shelved",
        "The word is durable: the host destroys the guest next, and the claim is given back then.",
    ),
    "unshelve": InstanceAct(
        "Unshelve",
        "primary",
        "conductor:instances:unshelve",
        "POST",
        f"{_INSTANCE}/unshelve",
        (SHELVED,),
        _will_unshelve,
        "is being unshelved",
        "The word is durable: a conductor looks for a host next.",
    ),
    "migrate": InstanceAct(
        "Migrate",
        "danger",
        "conductor:moves:create",
        "POST",
        f"{_INSTANCE}/migrate",
        (ACTIVE, STOPPED),
        _will_migrate,
        "is to move",
        "The move is durable: its steps are on the page of the instance.",
    ),
    "confirm-move": InstanceAct(
        "Confirm move",
        "danger",
        "conductor:moves:confirm",
        "POST",
        f"{_MOVE}/confirm",
        (SWITCHED,),
        _will_confirm,
        "stays on its new host",
        "The host that it left destroys what it has next.",
        of_move=True,
    ),
    "revert-move": InstanceAct(
        "Take back",
        "danger",
        "conductor:moves:revert",
        "POST",
        f"{_MOVE}/revert",
        (SWITCHED,),
        _will_revert,
        "goes back",
        "Its steps are on the page of the instance.",
        of_move=True,
    ),
    "abort-move": InstanceAct(
        "Abort move",
        "danger",
        "conductor:moves:abort",
        "POST",
        f"{_MOVE}/abort",
        ABORTABLE,
        _will_abort,
        "stays where it is",
        "Its steps are on the page of the instance.",
        of_move=True,
    ),
    "delete": InstanceAct(
        "Delete",
        "danger",
        "conductor:instances:delete",
        "DELETE",
        _INSTANCE,
        None,
        _will_delete,
        "is being deleted",
        "The deletion is durable: the host destroys the guest next.",
    ),
}
"""The acts by the verb of their address, in the order of their buttons."""


@seen_by_project(InstanceActQuestion)
def _question(view: InstanceActQuestion) -> InstanceActQuestion:
    """Return the question as a project sees it: without the host."""
    instance = seen(view.instance)
    return msgspec.structs.replace(
        view, instance=instance, move=None, will=ACTS[view.verb].will(instance, None)
    )


@seen_by_project(InstanceActOutcome)
def _outcome(view: InstanceActOutcome) -> InstanceActOutcome:
    instance = None if view.instance is None else seen(view.instance)
    return msgspec.structs.replace(view, instance=instance)

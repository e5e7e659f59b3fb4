"""Histories of instances as bodies of HTTP responses."""

from typing import Literal

import msgspec

from roost.model.visibility import BUILD_FAILED, NO_VALID_HOST, seen_by_project

EventName = Literal[
    "accept",
    "schedule",
    "claim",
    "build",
    "bury",
    "free",
    "lose",
    "find",
    "stop",
    "start",
    "rebuild",
    "offload",
    "reshape",
    "move",
    "give_up",
    "destroy",
]


class HistoryEvent(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An event that is part of an action. Times are in seconds since the epoch.

    - `accept`: the request became durable.
    - `schedule`: a run of the scheduler, from the records; `selected` or `refused`.
    - `claim`: a host without a build: its claim was `refused`, or given back, from the records.
    - `build`: an attempt on a host, which confirmed at `confirmed_at` that it starts the guest: `built`,
      `failed`, or `abandoned` as the instance was deleted.
    - `bury`: an instance that no host can take is put into cell0.
    - `free`: the claim is given back.
    - `lose`, `find`: the host says that the guest is not there, or there again.
    - `stop`, `start`: the host stops the guest, or starts it again: `stopped`, `started`, `failed`, or
      `abandoned` as another word or the end of the instance came first.
    - `rebuild`: the host makes the guest anew: `built`, `failed`, or `abandoned` as the instance ended.
    - `offload`: the host destroys the guest of an instance that is shelved: `success`, or `abandoned` as the
      instance ended. What it holds is given back then (`free`).
    - `reshape`: the allocations of the instance moved to other providers of its node; its guest ran on.
    - `move`: an attempt on the host that the instance is to move to: `moved`, `failed`, or `abandoned` as the
      instance ended; of a revert the host that it was on before.
    - `give_up`: an operator says that the guest is gone for good.
    - `destroy`: the host destroys the guest.

    `finished_at` and `result` are null while it lasts.
    """

    name: EventName
    started_at: float
    finished_at: float | None = None
    result: str | None = None
    reason: str | None = None
    code: str | None = None
    attempt: int | None = None
    confirmed_at: float | None = None
    cell: str | None = None
    host: str | None = None
    node: str | None = None
    run: str | None = None


class InstanceAction(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An action of a user, an operator or a host on an instance, and its result.

    `request_id`, `user_id` and `project_id` are the requester's; null without one, as when a host loses a
    guest, or stops one that runs though it is to be stopped. `result` is `success`, `error` or `abandoned`,
    and null while the action lasts. A move that ended in `error` has left the instance where it was.
    """

    kind: Literal[
        "create",
        "lose",
        "stop",
        "start",
        "rebuild",
        "shelve",
        "unshelve",
        "reshape",
        "migrate",
        "live_migrate",
        "resize",
        "evacuate",
        "revert",
        "give_up",
        "delete",
    ]
    request_id: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    started_at: float
    finished_at: float | None = None
    result: Literal["success", "error", "abandoned"] | None = None
    reason: str | None = None
    events: list[HistoryEvent] = []


class InstanceHistory(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The history of an instance, from its acceptance to its end: actions in order, each with its events.

    `state` is as in the instance, and `deleted` after its end. `missing` names what the history lacks:
    `records` that cannot be read, runs that are no longer recorded, a cell that cannot be asked, events that
    were left out.
    """

    uuid: str
    request_id: str
    project_id: str
    user_id: str
    flavor: str | None
    state: str
    cell: str | None
    actions: list[InstanceAction]
    missing: list[str]


_OF_OPERATORS = ("give_up", "migrate", "live_migrate", "resize", "evacuate", "revert")
"""Kinds of actions whose requesters a project does not see."""


@seen_by_project(InstanceHistory)
def _history(history: InstanceHistory) -> InstanceHistory:
    """Return the history as its project sees it: an operator who has ended the instance has no name."""
    return msgspec.structs.replace(
        history,
        cell=None,
        actions=[_action(each, history.project_id) for each in history.actions],
        missing=sorted({each.partition(" ")[0] for each in history.missing}),
    )


def _action(action: InstanceAction, project_id: str) -> InstanceAction:
    reason = None
    if action.kind in ("create", "unshelve") and action.result == "error":
        refused = [each.reason for each in action.events if each.name == "schedule" and each.reason]
        built = any(each.name == "build" for each in action.events)
        reason = refused[-1] if refused else BUILD_FAILED if built else NO_VALID_HOST
    by_itself = action.kind not in _OF_OPERATORS and action.project_id in (None, project_id)
    return msgspec.structs.replace(
        action,
        request_id=action.request_id if by_itself else None,
        user_id=action.user_id if by_itself else None,
        project_id=action.project_id if by_itself else None,
        reason=reason,
        events=[_event(each) for each in action.events],
    )


def _event(event: HistoryEvent) -> HistoryEvent:
    """Return an event as its project sees it. A run of the scheduler has its public reason already."""
    reason = event.reason if event.name == "schedule" else None
    return msgspec.structs.replace(event, reason=reason, code=None, cell=None, host=None, node=None)

"""Actions of an instance as its history tells them, begun and ended."""

from roost.conductor.history.types import InstanceAction
from roost.model.instance import Requester


def asked(kind: str, by: Requester | None, at: float) -> InstanceAction:
    """Return an action that began at ``at``, in seconds since the epoch. ``by``: None if nobody asked."""
    action = InstanceAction(kind=kind, started_at=at)  # type: ignore[arg-type]
    if by is not None:
        action.request_id, action.user_id, action.project_id = by.request_id, by.user_id, by.project_id
    return action


def finish(action: InstanceAction, at: float, result: str, reason: str | None = None) -> None:
    """End an action at ``at``."""
    action.finished_at, action.result, action.reason = at, result, reason  # type: ignore[assignment]

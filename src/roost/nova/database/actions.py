"""The actions of users on instances, the events of actions, and the faults of instances."""

import datetime
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.database.tables import instance_actions, instance_actions_events, instance_faults
from roost.storage import in_batches, transaction

CREATE: Final = "create"
"""The action of a boot. Source: ``nova.compute.instance_actions``."""

EVACUATE: Final = "evacuate"
"""The action of an evacuation."""

UNSHELVE: Final = "unshelve"
"""The action of an unshelve."""

ERROR: Final = "Error"
"""The result of an event that ended with an exception."""


class ActionEvent(NamedTuple):
    """A step of an action. ``host``: that of the service which took it. ``result``: None until it has ended,
    and in all but the first of several events with the same name."""

    name: str
    host: str | None
    result: str | None
    details: str | None


class NovaAction(NamedTuple):
    """An action on an instance, with its events in their order."""

    instance: str
    request_id: str | None
    name: str
    started: datetime.datetime | None
    events: Sequence[ActionEvent]


class InstanceFault(NamedTuple):
    """A fault of an instance, with the text that its users see."""

    host: str | None
    text: str
    at: datetime.datetime | None


@transaction
def read_actions(
    connection: Connection, uuids: Collection[str], name: str | None = None
) -> Mapping[str, list[NovaAction]]:
    """Return the actions on some instances, in their order. ``name``: only those of this name."""
    condition = instance_actions.c.deleted == 0
    if name is not None:
        condition &= instance_actions.c.action == name
    rows: list[Any] = []
    events: defaultdict[int, list[ActionEvent]] = defaultdict(list)
    for some in in_batches(uuids):
        mine = condition & instance_actions.c.instance_uuid.in_(some)
        rows += connection.execute(_ACTIONS.where(mine)).all()
        for action, event, host, result, details in connection.execute(_EVENTS.where(mine)):
            events[action].append(ActionEvent(event or "", host, result, details))
    found: defaultdict[str, list[NovaAction]] = defaultdict(list)
    for row in rows:
        found[row.instance_uuid].append(
            NovaAction(
                row.instance_uuid, row.request_id, row.action or "", row.start_time, tuple(events[row.id])
            )
        )
    return found


@transaction
def read_faults(connection: Connection, uuids: Collection[str]) -> Mapping[str, list[InstanceFault]]:
    """Return the faults of some instances, in their order."""
    found: defaultdict[str, list[InstanceFault]] = defaultdict(list)
    for some in in_batches(uuids):
        query = _FAULTS.where(instance_faults.c.instance_uuid.in_(some))
        for uuid, host, message, at in connection.execute(query):
            found[uuid].append(InstanceFault(host, message or "", at))
    return found


_ACTIONS = sa.select(
    instance_actions.c.id,
    instance_actions.c.instance_uuid,
    instance_actions.c.request_id,
    instance_actions.c.action,
    instance_actions.c.start_time,
).order_by(instance_actions.c.id)
_EVENTS = (
    sa.select(
        instance_actions_events.c.action_id,
        instance_actions_events.c.event,
        instance_actions_events.c.host,
        instance_actions_events.c.result,
        instance_actions_events.c.details,
    )
    .join(instance_actions, instance_actions.c.id == instance_actions_events.c.action_id)
    .order_by(instance_actions_events.c.id)
)
_FAULTS = (
    sa.select(
        instance_faults.c.instance_uuid,
        instance_faults.c.host,
        instance_faults.c.message,
        instance_faults.c.created_at,
    )
    .where(instance_faults.c.deleted == 0)
    .order_by(instance_faults.c.id)
)

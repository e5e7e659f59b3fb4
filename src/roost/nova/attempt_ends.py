"""The ends of build attempts, judged by Nova's rows of the instance. Pure, without I/O.

Nova does not say how an attempt ended: it keeps the instance's row, the events of the action with the hosts
that took part, and faults. A host that Nova's conductor left for an alternate has an event, and often no
fault. All hosts that the action's events name are told, in their order, the last one by the row.
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from roost.model.record import ABANDONED, BUILT, FAILED
from roost.nova.database.actions import CREATE, ERROR, ActionEvent, InstanceFault, NovaAction
from roost.nova.database.states import BUILDING, FAULTY
from roost.nova.database.traces import RowTrace

BUILD_STEP: Final = "compute__do_build_and_run_instance"
"""The event of a host that builds. It ends with success also if the build goes on at another host."""

LAST_STEPS: Final = frozenset(
    (
        "compute_finish_resize",
        "compute_finish_snapshot_based_resize_at_dest",
        "compute_post_live_migration_at_destination",
        "compute_rebuild_instance",
        "compute_unshelve_instance",
    )
)
"""The events on the new host with which a move is done."""

SUCCESS: Final = "Success"
"""The result of an event that ended without an exception."""

RESCHEDULED: Final = "Nova went on to another host; its databases keep no reason"
GIVEN_UP: Final = "Nova gave it up; its databases keep no reason"
DELETED: Final = "the instance was deleted before this ended"
NO_TRACE: Final = "the request was deleted, or given up, before Nova put the instance into a cell"


class AttemptEnd(NamedTuple):
    """The end of the attempt on a host: a result of `roost.model.record`, and its reason."""

    host: str
    result: str
    reason: str | None = None


class AttemptFacts(NamedTuple):
    """The facts of an instance in the cell of an attempt. ``action``: the action of the run's request."""

    row: RowTrace
    action: NovaAction | None
    faults: Sequence[InstanceFault]


def may_have_ended(row: RowTrace) -> bool:
    """Return whether the work on an instance has ended, so that its actions are worth reading."""
    return row.deleted or row.state == FAULTY or (row.task is None and row.state != BUILDING)


def ends_of(hosts: Sequence[str], facts: AttemptFacts) -> list[AttemptEnd]:
    """Return the ends of the attempts of one run for an instance, in their order; none if it goes on.

    ``hosts``: the claimed one, and its alternates.
    """
    row, action, faults = facts
    if not may_have_ended(row):
        return []
    if action is None:
        # Nova has deleted it, or it is of another request: the row alone tells of success, and of no failure.
        built = not row.deleted and row.state != FAULTY and row.host == hosts[0]
        return [AttemptEnd(hosts[0], BUILT)] if built else []
    if action.started is not None:
        since = action.started
        faults = [each for each in faults if each.at is None or each.at >= since]
    tried = [hosts[0]]
    tried += [each for each in _hosts_in(action.events) if each in hosts and each not in tried]
    judge = _boot if action.name == CREATE else _move
    last = judge(tried, hosts, row, action, faults)
    before = tried[: tried.index(last.host)] if last.host in tried else tried
    ends = [AttemptEnd(each, FAILED, _reason(each, action, faults) or RESCHEDULED) for each in before]
    return [*ends, last]


def _boot(
    tried: Sequence[str],
    hosts: Collection[str],
    row: RowTrace,
    action: NovaAction,
    faults: Sequence[InstanceFault],
) -> AttemptEnd:
    last = tried[-1]
    if row.state == FAULTY and not row.launched:
        return AttemptEnd(last, FAILED, _reason(last, action, faults) or _last(faults) or GIVEN_UP)
    if row.deleted and not row.launched:
        return AttemptEnd(last, ABANDONED, DELETED)
    # It may have moved since: its host counts only if no event says which host has built it.
    is_told = any(each.name == BUILD_STEP and each.host == last for each in action.events)
    return AttemptEnd(row.host if row.host in hosts and row.host and not is_told else last, BUILT)


def _move(
    tried: Sequence[str],
    hosts: Collection[str],
    row: RowTrace,
    action: NovaAction,
    faults: Sequence[InstanceFault],
) -> AttemptEnd:
    for event in action.events:
        if event.name in LAST_STEPS and event.result == SUCCESS and event.host in hosts:
            return AttemptEnd(event.host or "", BUILT)
    if row.deleted:
        return AttemptEnd(tried[-1], ABANDONED, DELETED)
    failed = any(each.result == ERROR for each in action.events)
    if row.host is not None and row.host in hosts and row.state != FAULTY and not failed:
        return AttemptEnd(row.host, BUILT)
    last = tried[-1]
    return AttemptEnd(last, FAILED, _reason(last, action, faults) or _last(faults) or GIVEN_UP)


def _hosts_in(events: Sequence[ActionEvent]) -> list[str]:
    """Return the hosts of events in their order."""
    return [each.host for each in events if each.host is not None]


def _reason(host: str, action: NovaAction, faults: Sequence[InstanceFault]) -> str | None:
    """Return why an attempt failed on a host: its last fault there, or the details of its event."""
    texts = [each.text for each in faults if each.host == host and each.text]
    texts = texts or [
        each.details for each in action.events if each.host == host and each.result == ERROR and each.details
    ]
    return " ".join(texts[-1].split()) if texts else None


def _last(faults: Sequence[InstanceFault]) -> str | None:
    texts = [each.text for each in faults if each.text]
    return " ".join(texts[-1].split()) if texts else None


def buried_reason(faults: Sequence[InstanceFault]) -> str:
    """Return why an attempt was abandoned whose instance is in cell0."""
    text = _last(faults)
    return NO_TRACE if text is None else f"Nova gave the boot up: {text}"

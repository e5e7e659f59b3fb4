"""Obstacles: why a host cannot be emptied, in words."""

import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.scheduler.maintenance.packed_hosts import Packing
from roost.scheduler.maintenance.plan import HostLeftOut


def fixed_obstacle(packing: Packing, host: int) -> HostLeftOut | None:
    """Return why a host can be emptied in no wave, whatever is free elsewhere; None: it may be possible."""
    for guest in packing.by_size(list(packing.on[host])):
        of = packing.fleet.guests[guest]
        allowed = np.flatnonzero(packing.allowed[packing.kind[guest]])
        allowed = allowed[allowed != host]
        reason = of.stays
        if reason is None and not len(allowed):
            reason = f"instance {of.uuid} may be on no other host: its request or its cell leaves none"
        if reason is None:
            reason = _too_large(packing, guest, allowed)
        if reason is not None:
            return HostLeftOut(packing.fleet.hosts[host].name, reason, of.uuid)
    return None


def _too_large(packing: Packing, guest: int, allowed: Rows) -> str | None:
    """Return why a guest fits on none of some hosts even if no other guest is there; None if it fits."""
    empty = packing.capacity[allowed] - packing.taken[allowed]
    amounts = packing.amounts[guest]
    if ((empty >= amounts) | (amounts == 0)).all(axis=1).any():
        return None
    uuid = packing.fleet.guests[guest].uuid
    for column, resource_class in enumerate(packing.classes):
        most = int(empty[:, column].max())
        if amounts[column] > most:
            return (
                f"instance {uuid} needs {amounts[column]} {resource_class}, and none of the {len(allowed)} "
                f"other hosts that it may be on has more than {most}, even if it is empty"
            )
    return (
        f"instance {uuid} needs {_said(packing, guest)}, and no other host has that together, even if empty"
    )


def present_obstacle(packing: Packing, host: int, pending: Bools) -> HostLeftOut:
    """Return why a host cannot be emptied with the others as they are."""
    name = packing.fleet.hosts[host].name
    outside = np.ones(len(pending), dtype=np.bool_)
    outside[host] = False
    mark = len(packing.journal)
    try:
        for guest in packing.by_size(list(packing.on[host])):
            targets = outside & ~pending if packing.moves[guest] else outside
            target = packing.best(guest, targets)
            if target is None or not packing.may_move(guest):
                return HostLeftOut(name, _no_room(packing, guest, targets), packing.fleet.guests[guest].uuid)
            packing.move(guest, target)
    finally:
        packing.take_back(mark)
    reason = "its guests fit elsewhere, but no room for those of a further host would be left"
    way_out = "it can be emptied without a reserve, or once something is deleted or a host is added"
    return HostLeftOut(name, f"{reason}: {way_out}")


def _no_room(packing: Packing, guest: int, targets: Bools) -> str:
    uuid = packing.fleet.guests[guest].uuid
    if not packing.may_move(guest):
        return f"instance {uuid} would have to move a third time"
    amounts = packing.amounts[guest]
    allowed = np.flatnonzero(targets & packing.allowed[packing.kind[guest]])
    if not len(allowed):
        return f"instance {uuid} has moved once, and all hosts that it may be on are still to be emptied"
    free = packing.free[allowed]
    with_room = ((free >= amounts) | (amounts == 0)).all(axis=1)
    if with_room.any():
        return (
            f"each of the {int(with_room.sum())} hosts with room for instance {uuid} has as many members of "
            "its anti-affinity group as it may have"
        )
    for column, resource_class in enumerate(packing.classes):
        most = max(int(free[:, column].max()), 0)
        if amounts[column] > most:
            at = packing.fleet.hosts[int(allowed[free[:, column].argmax()])].name
            return (
                f"instance {uuid} needs {amounts[column]} {resource_class} on one host, and the most that is "
                f"free is {most}, on {at}: {int(amounts[column]) - most} more would have to be freed there"
            )
    return f"no host has {_said(packing, guest)} free together, which instance {uuid} needs"


def _said(packing: Packing, guest: int) -> str:
    amounts = packing.amounts[guest].tolist()
    pairs = zip(amounts, packing.classes, strict=True)
    return ", ".join(f"{amount} {name}" for amount, name in pairs if amount)

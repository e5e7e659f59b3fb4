"""Maintenances: many hosts are emptied in waves, worked on, and given back. Their states.

    maintenance   running ─▶ done
                  running ⇄ paused
                  running, paused ─▶ cancelling ─▶ cancelled

    host          waiting ─▶ disabling ─▶ emptying ─▶ in-work ─▶ returning ─▶ returned
                  waiting, disabling, emptying, in-work ─▶ … ─▶ left-out

    waiting       it was in no wave yet
    disabling     its wave has begun: the word that disables it is stored, and is to be announced
    emptying      its instances move away
    in-work       it is empty: the hook is called, or an operator works on it
    returning     the word that gives it back is stored, and is to be announced
    returned      it was empty and worked on
    left-out      it was not, for a reason

The next wave begins when all hosts of the one before are returned or left out.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from roost.model.instance import Requester

RUNNING: Final = "running"
PAUSED: Final = "paused"
CANCELLING: Final = "cancelling"
DONE: Final = "done"
CANCELLED: Final = "cancelled"

MaintenanceState = Literal["running", "paused", "cancelling", "done", "cancelled"]

UNDER_WAY: Final = (RUNNING, PAUSED, CANCELLING)
"""States of maintenances that have not ended."""

WAITING: Final = "waiting"
DISABLING: Final = "disabling"
EMPTYING: Final = "emptying"
IN_WORK: Final = "in-work"
RETURNING: Final = "returning"
RETURNED: Final = "returned"
LEFT_OUT: Final = "left-out"

HostState = Literal["waiting", "disabling", "emptying", "in-work", "returning", "returned", "left-out"]

IN_WAVE: Final = (DISABLING, EMPTYING, IN_WORK, RETURNING)
"""States of the hosts of the wave that is under way."""

LEAVING: Final = (DISABLING, EMPTYING)
"""States of hosts whose instances are to move away."""


class Maintenance(msgspec.Struct, frozen=True, kw_only=True):
    """A maintenance.

    - ``reserve``, ``most_hosts``: of its plans, see `roost.scheduler.maintenance`.
    - ``keeps_going``: it goes on after a host was left out; else it pauses.
    - ``wave``: the number of the last wave that has begun, from 1; 0 before the first.
    - ``reason``: why it is paused, why the next wave does not begin, or what this one waits for; None
      without one.
    - ``owner``, ``owner_epoch``: the holder of the lease under which a super conductor carries it, and the
      number of the owner. Each write of an owner names both.
    - ``began``, ``changed_at``: seconds since the epoch; the latter is of its state.
    """

    uuid: str
    state: MaintenanceState
    by: Requester
    began: float
    changed_at: float
    reserve: bool = True
    most_hosts: int | None = None
    keeps_going: bool = False
    wave: int = 0
    reason: str | None = None
    owner: str | None = None
    owner_epoch: int = 0


class HookResult(msgspec.Struct, frozen=True):
    """The end of a call of the hook.

    ``failure``: why it counts as failed; None: it was carried out. ``status``: the exit status of a command,
    the status of a response; None: there was none. ``output``: the last lines.
    """

    failure: str | None = None
    status: int | None = None
    output: str = ""


class EarlierWord(msgspec.Struct, frozen=True):
    """The operator's word on a host before the maintenance disabled it."""

    enabled: bool
    reason: str | None = None
    moves: bool = False
    live: bool = False


class MaintainedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host of a maintenance.

    - ``wave``: that in which it is or was; 0: in none yet.
    - ``targets``: the host that the plan has for each instance, by uuid.
    - ``word_version``: the version of the word by which the maintenance has disabled it; None: it has not.
    - ``before``: the word before that one; None: there was none.
    - ``calls``, ``failures``: calls of the hook that were begun, and that have failed. ``result``: the last.
    - ``reason``: why it is left out, or is going to be.
    - ``changed_at``: when it entered its state, in seconds since the epoch.
    """

    maintenance: str
    host: str
    cell: str
    state: HostState
    changed_at: float
    wave: int = 0
    targets: Mapping[str, str] = {}
    word_version: int | None = None
    before: EarlierWord | None = None
    calls: int = 0
    failures: int = 0
    result: HookResult | None = None
    reason: str | None = None


class MaintenanceRefused(msgspec.Struct, frozen=True):
    """An operator's word on a maintenance is refused, and nothing is changed. ``reason``: for people."""

    reason: str

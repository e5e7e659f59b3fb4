"""The planner: the waves of a fleet.

Each component is planned by itself, and the waves with the same number are one. The number of waves is tried
from the lower bound on: hosts are divided evenly over them, so that a plan uses no more room than it needs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roost.scheduler.maintenance.bound import WaveBound, by_number, least_waves
from roost.scheduler.maintenance.components import components_of
from roost.scheduler.maintenance.obstacles import fixed_obstacle, present_obstacle
from roost.scheduler.maintenance.packed_hosts import Packing
from roost.scheduler.maintenance.plan import (
    FleetToMaintain,
    HostLeftOut,
    MaintenancePlan,
    PlannedMove,
    Wave,
)
from roost.scheduler.maintenance.wave import WaveSearch, WaveSize

TRIES = 4
"""Numbers of waves that are tried, from the lower bound on. The last plan may have more."""


class _Part(NamedTuple):
    """The plan of a component."""

    waves: list[Wave]
    left_out: list[HostLeftOut]
    bound: WaveBound


def plan_maintenance(fleet: FleetToMaintain) -> MaintenancePlan:
    """Return waves in which the selected hosts of a fleet are emptied, and the hosts that cannot be.

    Each guest moves at most `MOST_MOVES` times. In every wave each host outside has room for what comes, no
    server group has more members on a host than it may have, also during the moves, and with a reserve the
    guests of any one host outside fit on the others, if they did before the wave.
    """
    parts = [_plan(each) for each in components_of(fleet)]
    bound = max((part.bound for part in parts), default=WaveBound(0, "no host is selected"))
    if fleet.most_hosts is not None:
        bound = max(
            bound, by_number(sum(len(wave.hosts) for part in parts for wave in part.waves), fleet.most_hosts)
        )
    left_out = tuple(each for part in parts for each in part.left_out)
    return MaintenancePlan(_merged(parts, fleet.most_hosts), left_out, bound.waves, bound.reason)


def _merged(parts: Sequence[_Part], most: int | None) -> tuple[Wave, ...]:
    """Return the waves of components side by side, with at most so many hosts in each."""
    merged: list[list[Wave]] = []
    for part in parts:
        number = 0
        for wave in part.waves:
            while (
                number < len(merged) and most is not None and _size(merged[number]) + len(wave.hosts) > most
            ):
                number += 1
            if number == len(merged):
                merged.append([])
            merged[number].append(wave)
            number += 1
    return tuple(
        Wave(
            tuple(host for wave in together for host in wave.hosts),
            tuple(move for wave in together for move in wave.moves),
            sum(wave.unsheltered for wave in together),
        )
        for together in merged
    )


def _size(waves: Sequence[Wave]) -> int:
    return sum(len(wave.hosts) for wave in waves)


def _plan(fleet: FleetToMaintain) -> _Part:
    """Return the plan of a component."""
    packing = Packing(fleet)
    selected = [number for number, host in enumerate(fleet.hosts) if host.selected]
    obstacles = (fixed_obstacle(packing, host) for host in selected)
    fixed = [each for each in obstacles if each is not None]
    stuck = {each.host for each in fixed}
    emptied = [host for host in selected if fleet.hosts[host].name not in stuck]
    bound = least_waves(fleet, [fleet.hosts[host].name for host in emptied])
    best: _Part | None = None
    for waves in range(bound.waves, bound.waves + TRIES) if emptied else ():
        found = _divided(Packing(fleet), emptied, waves, bound)
        if best is None or _rank(found) < _rank(best):
            best = found
        if not found.left_out and len(found.waves) <= waves:
            break
    if best is None:
        return _Part([], fixed, bound)
    return best._replace(left_out=[*fixed, *best.left_out])


def _rank(part: _Part) -> tuple[int, int]:
    return len(part.left_out), len(part.waves)


def _divided(packing: Packing, emptied: list[int], number: int, bound: WaveBound) -> _Part:
    """Plan a component with a number of waves, or more if that is not possible."""
    fleet = packing.fleet
    pending = np.zeros(len(fleet.hosts), dtype=np.bool_)
    pending[emptied] = True
    share = packing.capacity_shares()
    most = fleet.most_hosts or len(emptied)
    waves: list[Wave] = []
    while pending.any():
        mark = len(packing.journal)
        size = WaveSize(float(share[pending].sum()) / max(number - len(waves), 1), most)
        search = WaveSearch(packing, pending, share, reserve=fleet.reserve)
        hosts = search.find(size)
        if not hosts:
            break
        pending[hosts] = False
        names = [host.name for host in fleet.hosts]
        moves = [
            PlannedMove(fleet.guests[entry.guest].uuid, names[entry.source], names[entry.target])
            for entry in packing.journal[mark:]
        ]
        unsheltered = len(search.excused.difference(hosts))
        waves.append(Wave(tuple(names[host] for host in hosts), tuple(moves), unsheltered))
    left = [present_obstacle(packing, host, pending) for host in np.flatnonzero(pending).tolist()]
    return _Part(waves, left, bound)

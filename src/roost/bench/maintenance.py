"""Benchmark of maintenance plans: all hosts of the Azure trace at its fullest, in waves.

The trace is placed on equal hosts, by one of three rules, up to the bin with the most processors in use.
Each plan is played guest by guest, apart from the planner, and must not break a capacity or a server group.
"""

import heapq
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from roost.bench.errors import BenchError
from roost.bench.measurement import ComparedSetting, announce
from roost.bench.options import count_option, reported
from roost.bench.replay import azure
from roost.bench.replay.workload import Workload
from roost.bench.report import BenchReport, BenchTable, Column
from roost.cli.numbers import Number, WholeNumber
from roost.fleet.columns import Bools
from roost.fleet.fits import has_room
from roost.scheduler.maintenance.plan import (
    MOST_MOVES,
    FleetToMaintain,
    GuestToMove,
    HostToMaintain,
    MaintenancePlan,
)
from roost.scheduler.maintenance.planner import plan_maintenance

HOSTS: Final = 820
"""Hosts of 64 vCPUs with which the peak of the trace is at 84 % of CPU."""

RULES: Final = ("emptiest", "random", "fullest")
"""Rules by which the trace is placed: the host with most free processors, one drawn, the one with least."""

MOST_MEMBERS: Final = 50
"""Instances of a request that may become a server group. Larger ones fit on no full cloud."""

CLASSES: Final = ("VCPU", "MEMORY_MB")
_ANY: Final = "any"

TABLE: Final = BenchTable(
    "maintenance",
    "Maintenance of all hosts in waves",
    (
        Column("placed on the host", "rule"),
        Column("hosts", "hosts", ","),
        Column("instances", "instances", ","),
        Column("in groups", "in_groups", ","),
        Column("CPU in use", "cpu", ".1%"),
        Column("room for a host", "reserve"),
        Column("lower bound", "least_waves", ","),
        Column("waves", "waves", ","),
        Column("largest", "largest", ","),
        Column("without a reserve", "unsheltered", ","),
        Column("moves", "moves", ","),
        Column("moved twice", "twice", ","),
        Column("s", "seconds", ",.1f"),
    ),
)
"""Each row is one plan. ``unsheltered``: hosts outside a wave whose guests fit on no others, also before it.
``seconds``: processor time of the planner."""


def fullest_fleet(workload: Workload, rule: str, share_in_groups: float, seed: int) -> FleetToMaintain:
    """Return the hosts and guests of a workload in the bin with the most processors in use.

    ``share_in_groups``: of requests for several instances, those that are anti-affinity groups.

    Raises: `BenchError` if a request does not fit.
    """
    draw, names = random.Random(seed), [host.name for host in workload.hosts]
    capacity = np.array([[host.shape.resources[name] for name in CLASSES] for host in workload.hosts])
    free = capacity.copy()
    there: dict[int, tuple[int, tuple[int, int], str | None]] = {}
    departures: list[tuple[int, int]] = []
    groups: dict[str, set[int]] = {}
    number, last = 0, _fullest_bin(workload)
    for bin_ in workload.bins[: last + 1]:
        while departures and departures[0][0] <= bin_.start:
            at, amounts, group = there.pop(heapq.heappop(departures)[1])
            free[at] += amounts
            if group is not None:
                groups[group].discard(at)
        for request in bin_.requests:
            amounts = (request.flavor.vcpus, request.flavor.memory_mb)
            group = None
            if 1 < request.count <= MOST_MEMBERS and draw.random() < share_in_groups:
                group = f"group-{number}"
                groups[group] = set()
            for departure in request.departures:
                fits: Bools = np.all(free >= amounts, axis=1)
                if group is not None:
                    fits[list(groups[group])] = False
                found = np.flatnonzero(fits)
                if not len(found):
                    raise BenchError(f"an instance of the trace fits on none of {len(names)} hosts")
                left = free[found, 0]
                if rule == "random":
                    at = int(draw.choice(found))
                else:
                    at = int(found[left.argmax() if rule == "emptiest" else left.argmin()])
                free[at] -= amounts
                there[number] = at, amounts, group
                if group is not None:
                    groups[group].add(at)
                if departure is not None:
                    heapq.heappush(departures, (departure, number))
                number += 1
    hosts = tuple(
        HostToMaintain(name, dict(zip(CLASSES, row, strict=True)))
        for name, row in zip(names, capacity.tolist(), strict=True)
    )
    guests = tuple(
        GuestToMove(f"instance-{number}", names[at], dict(zip(CLASSES, amounts, strict=True)), _ANY, group)
        for number, (at, amounts, group) in there.items()
    )
    present = {guest.group for guest in guests if guest.group is not None}
    return FleetToMaintain(hosts, guests, {_ANY: frozenset(names)}, dict.fromkeys(sorted(present), 1))


def _fullest_bin(workload: Workload) -> int:
    """Return the index of the bin with the most processors in use."""
    departures: list[tuple[int, int]] = []
    used = most = fullest = 0
    for index, bin_ in enumerate(workload.bins):
        while departures and departures[0][0] <= bin_.start:
            used -= heapq.heappop(departures)[1]
        for request in bin_.requests:
            used += request.flavor.vcpus * request.count
            for departure in request.departures:
                if departure is not None:
                    heapq.heappush(departures, (departure, request.flavor.vcpus))
        if used > most:
            most, fullest = used, index
    return fullest


def faults_of(fleet: FleetToMaintain, plan: MaintenancePlan) -> list[str]:
    """Return what is wrong with a plan, played move by move: in words, empty if it is valid."""
    faults = [
        f"{len(plan.left_out)} hosts are left out, {each.host}: {each.reason}" for each in plan.left_out[:1]
    ]
    guests = {guest.uuid: guest for guest in fleet.guests}
    at = {guest.uuid: guest.host for guest in fleet.guests}
    capacity = {host.name: host.capacity for host in fleet.hosts}
    used, members = Counter[tuple[str, str]](), Counter[tuple[str, str]]()

    def put(uuid: str, host: str, times: int) -> None:
        for name, amount in guests[uuid].amounts.items():
            used[host, name] += times * amount
        if (group := guests[uuid].group) is not None:
            members[host, group] += times

    for uuid, host in at.items():
        put(uuid, host, 1)
    for number, wave in enumerate(plan.waves, 1):
        # The sources' room is given back when the wave is over.
        for move in wave.moves:
            if at[move.guest] != move.source or move.target in wave.hosts:
                faults.append(f"wave {number}: {move.guest} goes from {move.source} to {move.target}")
            at[move.guest] = move.target
            put(move.guest, move.target, 1)
            over = [
                name for name in CLASSES if not has_room(used[move.target, name], capacity[move.target][name])
            ]
            group = guests[move.guest].group
            if over or (group is not None and members[move.target, group] > fleet.groups[group]):
                faults.append(f"wave {number}: {move.target} has no place for {move.guest}")
        for move in wave.moves:
            put(move.guest, move.source, -1)
        left = {host for host in wave.hosts if any(used[host, name] for name in CLASSES)}
        faults += [f"wave {number}: {host} is not empty" for host in sorted(left)]
    moved = Counter(move.guest for wave in plan.waves for move in wave.moves)
    faults += [f"{uuid} moves {times} times" for uuid, times in moved.items() if times > MOST_MOVES]
    if len(plan.waves) > plan.least_waves + 1:
        faults.append(f"{len(plan.waves)} waves, and the lower bound is {plan.least_waves}")
    return faults


def _row(fleet: FleetToMaintain, rule: str) -> tuple[dict[str, Any], list[str]]:
    began = time.process_time()
    plan = plan_maintenance(fleet)
    seconds = time.process_time() - began
    moved = Counter(move.guest for wave in plan.waves for move in wave.moves)
    used, there = (
        sum(each["VCPU"] for each in amounts)
        for amounts in ((guest.amounts for guest in fleet.guests), (host.capacity for host in fleet.hosts))
    )
    row = {
        "rule": rule,
        "hosts": len(fleet.hosts),
        "instances": len(fleet.guests),
        "in_groups": sum(guest.group is not None for guest in fleet.guests),
        "cpu": used / there,
        "reserve": "yes" if fleet.reserve else "no",
        "least_waves": plan.least_waves,
        "waves": len(plan.waves),
        "largest": max((len(wave.hosts) for wave in plan.waves), default=0),
        "unsheltered": max((wave.unsheltered for wave in plan.waves), default=0),
        "moves": plan.moves,
        "twice": sum(times == MOST_MOVES for times in moved.values()),
        "seconds": seconds,
    }
    return row, [f"{rule}: {fault}" for fault in faults_of(fleet, plan)]


@click.command(epilog="Example: roost bench maintenance ./azure-v1")
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@count_option("--hosts", HOSTS, "Hosts.")
@click.option("--bins", type=WholeNumber(min=1), help="Only the first N bins.")
@click.option(
    "--groups",
    type=Number(0, 1),
    default=0.3,
    show_default=True,
    help="Share of the requests for several instances that are anti-affinity groups.",
)
@click.option("--no-reserve", is_flag=True, help="Leave no room for the guests of one more host.")
@click.option("--seed", type=WholeNumber(), default=42, show_default=True, help="Seed of all random numbers.")
@reported(database=False)
def maintenance(
    setting: ComparedSetting,
    directory: Path,
    hosts: int,
    bins: int | None,
    groups: float,
    no_reserve: bool,
    seed: int,
) -> BenchReport:
    """Plan the maintenance of all hosts of the Azure trace in DIR at its fullest.

    Exit status: 0 done, 1 a plan has more than one wave above the lower bound, moves an instance more than
    twice, breaks a server group or a capacity, or leaves a host out; 2 could not run.
    """
    workload = azure.read(directory, bins, hosts)
    rows, wrong = [], []
    for rule in RULES:
        announce(f"maintenance: placed on the {rule} host")
        fleet = fullest_fleet(workload, rule, groups, seed)
        if no_reserve:
            fleet = FleetToMaintain(fleet.hosts, fleet.guests, fleet.kinds, fleet.groups, reserve=False)
        row, faults = _row(fleet, rule)
        rows.append(row)
        wrong += faults
    return TABLE.report(rows, {"trace": "azure-v1", "groups": groups, "seed": seed}, wrong=wrong)

"""Benchmark beside nova-scheduler: calls of select_destinations, from the request spec to the selections.

Nova's scheduler and Roost's read the same databases and claim in the same placement. Calls are made at the
endpoint, without a broker: a serialised request spec in, serialised selections out. Claims are freed after
each measurement.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import click

from roost.bench.errors import BenchError
from roost.bench.goals import Calibration, Goal
from roost.bench.measurement import ComparedSetting, announce, announce_round, percentiles_ms
from roost.bench.nova.computes import computes
from roost.bench.nova.nova_cloud import MeasuredCloud, NovaEnvironment, nova_cloud
from roost.bench.nova.schedulers import (
    SchedulerProcess,
    TimedCalls,
    bridge_over_http,
    bridge_with_ledger,
    nova_scheduler,
)
from roost.bench.options import Option, counts_option, hosts, reported
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.requests import REPEATED

WARM_UP: Final = 2
"""Calls of each scheduler before the first measurement; one of nova-scheduler may take a second."""

GOALS: Final = tuple(
    Goal(
        workload=f"a call of Nova, 10,000 compute nodes, {service}",
        of={"hosts": 10_000, "numa": "no", "callers": 1, "service": service},
        field="quicker",
        unit="times as quick as nova-scheduler",
        at_least=100,
        calibrations=(Calibration(measured, "MariaDB", machine="B"),),
    )
    for service, measured in (
        ("roost, ledger", (399, 296, 364, 253)),
        ("roost, placement over HTTP", (77.4, 79.4, 100, 85.4)),
    )
)

TABLE: Final = BenchTable(
    "nova",
    "Calls of select_destinations beside nova-scheduler",
    (
        Column("hosts", "hosts", ","),
        Column("NUMA", "numa"),
        Column("callers", "callers", ","),
        Column("service", "service"),
        Column("calls", "calls", ","),
        Column("p50 ms", "p50_ms", ",.2f"),
        Column("p99 ms", "p99_ms", ",.2f"),
        Column("calls/s", "per_second", ",.1f"),
        Column("processor ms", "processor_ms", ",.2f"),
        Column("times as quick", "quicker", ",.0f"),
    ),
    GOALS,
)
"""Each row is one scheduler with so many callers, each of which waits for its answer.

``processor_ms``: processor time of the scheduler's process for one call. ``quicker``: the median of
nova-scheduler divided by that of the row.
"""


def nova_environment(python: Path) -> NovaEnvironment:
    """Return the environment of an interpreter.

    Raises:
        BenchError: There is no such interpreter.
    """
    if not python.exists():
        raise BenchError(f"there is no interpreter with Nova at {python}: 'make nova' makes one")
    return NovaEnvironment(python.absolute())


with_nova: Option = click.option(
    "--nova-python",
    type=click.Path(path_type=Path, dir_okay=False),
    default=lambda: Path(os.environ.get("ROOST_NOVA_PYTHON") or Path(sys.prefix) / "nova/bin/python"),
    help="The interpreter of an environment with Nova and PyMySQL.  [default: $ROOST_NOVA_PYTHON, or that "
    "of 'make nova']",
)


def first_answers(environment: NovaEnvironment, folder: Path, numa: bool) -> tuple[dict[str, Any], list[Any]]:
    """Return the columns of a compute node, and a request spec for each flavor, as Nova's objects write them.

    Raises `BenchError` if Nova does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    conf = folder / "nova-objects.conf"
    conf.write_text(f"[DEFAULT]\nhost = bench\nstate_path = {folder}\n")
    flavors = [
        {"name": each.name, "vcpus": each.vcpus, "memory_mb": each.memory_mb, "root_gb": each.disk_gb}
        for each in REPEATED
    ]
    with nova_scheduler(environment, conf, folder / "nova-objects.log") as nova:
        return nova.ask("columns", numa=numa), nova.ask("specs", flavors=flavors)


def measure(
    setting: ComparedSetting,
    environment: NovaEnvironment,
    sizes: Sequence[int],
    callers: Sequence[int],
    numa: bool,
) -> BenchReport:
    """Measure all schedulers on clouds of each size, with each number of callers, in turns.

    Raises:
        BenchError: A part cannot be started, or a call fails.
    """
    columns, specs = first_answers(environment, setting.folder, numa)
    rows = []
    for size in sizes:
        with ExitStack() as stack:
            cloud = stack.enter_context(nova_cloud(setting.folder, environment, computes(size), columns))
            log = cloud.folder / "nova-scheduler.log"
            bridges = [
                stack.enter_context(each) for each in (bridge_over_http(cloud), bridge_with_ledger(cloud))
            ]
            for each in bridges:
                each.wait_for_nodes(size)
            theirs = stack.enter_context(nova_scheduler(environment, cloud.nova_conf, log))
            schedulers = [theirs, *bridges]
            for each in schedulers:
                announce(f"nova: {size:,} hosts, warming up {each.name}")
                cloud.free(each.calls(specs, 1, 0.0, WARM_UP).instances)
            for number in callers:
                announce(f"nova: {size:,} hosts, {number} callers")
                found = _in_turns(cloud, schedulers, specs, number, setting)
                rows += [
                    {**row, "hosts": size, "numa": "yes" if numa else "no", "callers": number}
                    for row in found
                ]
    return TABLE.report(rows, {"database": "mariadb", "rounds": setting.rounds, "seconds": setting.seconds})


def _in_turns(
    cloud: MeasuredCloud,
    schedulers: Sequence[SchedulerProcess],
    specs: Sequence[Any],
    callers: int,
    setting: ComparedSetting,
) -> list[Mapping[str, Any]]:
    """Return a row for each scheduler; the first is the one that the others are compared with."""
    made: list[list[TimedCalls]] = [[] for _ in schedulers]
    used = [0.0 for _ in schedulers]
    for number in range(setting.rounds):
        for place, scheduler in enumerate(schedulers):
            before = scheduler.processor_seconds()
            calls = scheduler.calls(specs, callers, setting.seconds)
            used[place] += scheduler.processor_seconds() - before
            made[place].append(calls)
            cloud.free(calls.instances)
            rate = len(calls.times) / calls.seconds
            announce_round(number + 1, setting.rounds, scheduler.name, rate)
    rows: list[Mapping[str, Any]] = []
    for scheduler, rounds, processor in zip(schedulers, made, used, strict=True):
        times = [each for calls in rounds for each in calls.times]
        p50, p99 = percentiles_ms(times)
        row = {
            "service": scheduler.name,
            "calls": len(times),
            "p50_ms": p50,
            "p99_ms": p99,
            "per_second": len(times) / sum(calls.seconds for calls in rounds),
            "processor_ms": processor / len(times) * 1000,
        }
        rows.append({**row, "quicker": rows[0]["p50_ms"] / p50} if rows else row)
    return rows


@click.command(epilog="Example: roost bench nova --hosts 10000 --callers 1")
@hosts
@counts_option("--callers", (1, 16), "Callers at a time")
@click.option("--numa", is_flag=True, help="Compute nodes have a NUMA topology, as those of libvirt do.")
@with_nova
@reported(database=False, rounds=2, seconds=10.0)
def nova(
    setting: ComparedSetting,
    hosts: tuple[int, ...],
    callers: tuple[int, ...],
    numa: bool,
    nova_python: Path,
) -> BenchReport:
    """Time calls of Nova's scheduler and of Roost's in its place, on the same databases and placement.

    It needs MariaDB, Nova and PyMySQL.
    """
    return measure(setting, nova_environment(nova_python), hosts, callers, numa)

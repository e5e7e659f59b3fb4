"""Benchmark of the feed: the processor time of following a cloud whose computes report.

The computes report all the time. Rounds with the bridge and rounds in which it is stopped take turns. MariaDB
says the processor time of each account, of which the bridge has one of its own: other work on the machine
changes the difference of two rounds by more than the bridge does.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import click

from roost.bench.errors import BenchError
from roost.bench.goals import Calibration, Goal
from roost.bench.measurement import ComparedSetting, announce
from roost.bench.nova.computes import CELL, computes
from roost.bench.nova.decisions import first_answers, nova_environment, with_nova
from roost.bench.nova.nova_cloud import ACCOUNT, MeasuredCloud, NovaEnvironment, nova_cloud
from roost.bench.nova.schedulers import SchedulerProcess, bridge_over_http
from roost.bench.options import count_option, reported
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.server_process import die_with_parent
from roost.bench.services import processor_seconds

SETTLE_SECONDS: Final = 10.0
"""Seconds between the change of a round and its measurement."""

GOALS: Final = (
    Goal(
        workload="the feed of 10,000 compute nodes, the bridge",
        of={"hosts": 10_000, "numa": "no"},
        field="bridge_percent",
        unit="% of a core",
        at_most=5,
        calibrations=(Calibration((4.08,), "MariaDB", machine="B"),),
    ),
    Goal(
        workload="the feed of 10,000 compute nodes, MariaDB for the bridge",
        of={"hosts": 10_000, "numa": "no"},
        field="mariadb_percent",
        unit="% of a core",
        at_most=10,
        calibrations=(Calibration((1.2,), "MariaDB", machine="B"),),
    ),
)

TABLE: Final = BenchTable(
    "nova-feed",
    "Following a cloud whose computes report",
    (
        Column("hosts", "hosts", ","),
        Column("NUMA", "numa"),
        Column("reports/s", "reports_per_second", ",.0f"),
        Column("bridge %", "bridge_percent", ",.2f"),
        Column("MariaDB for it %", "mariadb_percent", ",.2f"),
        Column("its statements/s", "statements_per_second", ",.1f"),
        Column("its rows/s", "rows_per_second", ",.0f"),
        Column("MariaDB with it %", "with_percent", ",.1f"),
        Column("without %", "without_percent", ",.1f"),
    ),
    GOALS,
)
"""All percentages are of one core. ``mariadb_percent``: by MariaDB's statistics of the bridge's account.
``with_percent`` and ``without_percent`` are of the whole server, in rounds with the bridge and without it.
"""


def measure(setting: ComparedSetting, environment: NovaEnvironment, hosts: int, numa: bool) -> BenchReport:
    """Measure rounds with the bridge and without it.

    Raises:
        BenchError: A part cannot be started, or has ended.
    """
    columns, _ = first_answers(environment, setting.folder, numa)
    with ExitStack() as stack:
        plan = computes(hosts)
        cloud = stack.enter_context(nova_cloud(setting.folder, environment, plan, columns, durable=False))
        bridge = stack.enter_context(bridge_over_http(cloud))
        bridge.wait_for_nodes(hosts)
        stack.enter_context(_reporting(cloud))
        cloud.server.ask("SET GLOBAL userstat = 1")
        totals: dict[bool, _Used] = {True: _Used(), False: _Used()}
        for number in range(2 * setting.rounds):
            running = number % 4 in (0, 3)
            announce(f"nova-feed: {'with' if running else 'without'} the bridge, round {number // 2 + 1}")
            (bridge.resume if running else bridge.pause)()
            time.sleep(SETTLE_SECONDS)
            totals[running].measure(cloud, bridge, setting.seconds)
        bridge.resume()
    used, without = totals[True], totals[False]
    row: dict[str, Any] = {
        "hosts": hosts,
        "numa": "yes" if numa else "no",
        "reports_per_second": used.rate("reports"),
        "bridge_percent": 100 * used.rate("bridge"),
        "mariadb_percent": 100 * used.rate("account"),
        "statements_per_second": used.rate("statements"),
        "rows_per_second": used.rate("rows"),
        "with_percent": 100 * used.rate("mariadb"),
        "without_percent": 100 * without.rate("mariadb"),
    }
    return TABLE.report([row], {"rounds": setting.rounds, "seconds": setting.seconds})


class _Used:
    """The sums of counters over some rounds, by name, and the seconds of these rounds."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._seconds = 0.0

    def measure(self, cloud: MeasuredCloud, bridge: SchedulerProcess, seconds: float) -> None:
        """Add a round."""
        started, before = time.monotonic(), _counters(cloud, bridge)
        time.sleep(seconds)
        after = _counters(cloud, bridge)
        self._seconds += time.monotonic() - started
        for name, value in after.items():
            self._sums[name] = self._sums.get(name, 0.0) + value - before[name]

    def rate(self, name: str) -> float:
        """Return what was used in a second."""
        return self._sums[name] / self._seconds


def _counters(cloud: MeasuredCloud, bridge: SchedulerProcess) -> dict[str, float]:
    statistics = cloud.server.ask(
        "SELECT coalesce(sum(cpu_time), 0), coalesce(sum(select_commands + other_commands), 0),"
        " coalesce(sum(rows_sent), 0) FROM information_schema.user_statistics"
        f" WHERE user = '{ACCOUNT}'"
    )
    services = cloud.server.ask(f"SELECT sum(report_count) FROM {cloud.databases[CELL]}.services")
    return {
        "account": float(statistics[0][0]),
        "statements": float(statistics[0][1]),
        "rows": float(statistics[0][2]),
        "reports": float(services[0][0]),
        "bridge": bridge.processor_seconds(),
        "mariadb": processor_seconds(cloud.server.pid),
    }


@contextmanager
def _reporting(cloud: MeasuredCloud) -> Iterator[None]:
    """Let the computes report. Raises `BenchError` at the end if they have stopped."""
    log = cloud.folder / "computes.log"
    url = cloud.server.url(cloud.databases[CELL])
    command = [sys.executable, "-m", "roost.bench.nova.computes", url, str(cloud.hosts)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, preexec_fn=die_with_parent)
    try:
        yield
        if process.poll() is not None:
            raise BenchError(f"the computes report no more:\n{log.read_text()[-2000:]}")
    finally:
        process.kill()
        process.wait()


@click.command("nova-feed", epilog="Example: roost bench nova-feed --hosts 10000 --numa")
@count_option("--hosts", 10_000, "Compute nodes.")
@click.option("--numa", is_flag=True, help="Compute nodes have a NUMA topology, as those of libvirt do.")
@with_nova
@reported(database=False, rounds=2, seconds=60.0)
def nova_feed(setting: ComparedSetting, hosts: int, numa: bool, nova_python: Path) -> BenchReport:
    """Measure what it costs to follow the databases of a Nova whose computes report each ten seconds.

    It needs MariaDB, Nova and PyMySQL.
    """
    return measure(setting, nova_environment(nova_python), hosts, numa)

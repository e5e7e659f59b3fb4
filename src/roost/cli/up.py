"""``roost up``: the whole system as one long-running server."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import click

from roost import tracing
from roost.cli.configuration import warn_of_options
from roost.cli.listening import Listening, listening
from roost.cli.options import metrics_host, metrics_port, no_authentication
from roost.compute.drivers.simulated import FailureRule, Script
from roost.ledger import keep_what_is_loaded
from roost.logs import configure_logs
from roost.metrics.enabling import counted, exposed
from roost.model.errors import OperatorError
from roost.model.inventory import Inventory
from roost.placement.http.server import check_exposure
from roost.serving.listeners import listen
from roost.system import Layout, System, kept_layout, uniform_layout
from roost.system.config import log_options, open_system_records, read_config, system_options, tracing_options
from roost.system.lock import locked
from roost.system.report import report_of
from roost.system.server import serve
from roost.system.simulated_parts import numa_topology, pci_device_pools

DEFAULT_HOSTS = 100
DEFAULT_CELLS = 3


@click.command(epilog="Example: roost up --port 8778 --data-dir ./roost-data --hosts 100 --cells 3")
@listening
@click.option(
    "--drain-seconds",
    type=click.FloatRange(0),
    default=1.0,
    show_default=True,
    help="Time to finish requests under way at the end.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=Path("roost-data/up"),
    show_default=True,
    help="Folder of the databases.",
)
@click.option("--hosts", type=click.IntRange(min=1), help=f"Simulated hosts. [default: {DEFAULT_HOSTS}]")
@click.option("--cells", type=click.IntRange(min=1), help=f"Cells. [default: {DEFAULT_CELLS}]")
@click.option(
    "--host-vcpus", type=click.IntRange(min=1), default=64, show_default=True, help="vCPUs of a host."
)
@click.option(
    "--host-memory-gib", type=click.IntRange(min=1), default=448, show_default=True, help="Memory of a host."
)
@click.option(
    "--host-disk-gib", type=click.IntRange(min=1), default=4000, show_default=True, help="Disk of a host."
)
@click.option(
    "--host-numa-cells",
    type=click.IntRange(0, 64),
    default=0,
    show_default=True,
    help="NUMA cells that a host reports, for NUMATopologyFilter.",
)
@click.option(
    "--host-pci-devices",
    type=click.IntRange(0, 256),
    default=0,
    show_default=True,
    help="PCI devices 10de:2236 that a host reports, dealt out to its NUMA cells, for PciPassthroughFilter.",
)
@click.option("--failure-rate", type=click.FloatRange(0, 1), default=0.0, help="Share of builds that fail.")
@click.option("--build-seconds", type=click.FloatRange(min=0), default=0.0, help="Duration of a build.")
@click.option(
    "--config-file", type=click.Path(path_type=Path), help="Options of scheduler, records, conductor."
)
@click.option("--seed", type=int, default=42, show_default=True, help="Seed of all random numbers.")
@metrics_port
@metrics_host
@no_authentication
def up(
    listening: Listening,
    drain_seconds: float,
    data_dir: Path,
    hosts: int | None,
    cells: int | None,
    host_vcpus: int,
    host_memory_gib: int,
    host_disk_gib: int,
    host_numa_cells: int,
    host_pci_devices: int,
    failure_rate: float,
    build_seconds: float,
    config_file: Path | None,
    seed: int,
    metrics_port: int | None,
    metrics_host: str,
    insecure: bool,
) -> None:
    """Run placement, scheduler, conductors and cells of simulated hosts in one process.

    The Placement API is at /, the conductor's at /v1/instances. For development: tokens are not checked, as
    with upstream's noauth2. With the data directory of an earlier run or replay, the system continues in its
    last state, also after a crash.
    """
    inventory = {
        "VCPU": Inventory(host_vcpus),
        "MEMORY_MB": Inventory(host_memory_gib * 1024),
        "DISK_GB": Inventory(host_disk_gib),
    }
    if host_numa_cells > host_vcpus:
        raise click.UsageError(f"--host-numa-cells {host_numa_cells} is more than --host-vcpus {host_vcpus}")

    def new_layout(hosts: int, cells: int) -> Layout:
        return uniform_layout(
            hosts,
            cells,
            inventory,
            numa_topology(host_numa_cells, host_vcpus, host_memory_gib * 1024),
            pci_device_pools(host_pci_devices, host_numa_cells),
        )

    check_exposure(listening.host, allowed=insecure)
    listeners = listen(listening.address, 1)
    conf = read_config(config_file, data_dir)
    warn_of_options(config_file)
    logs = log_options(conf)
    configure_logs(logs)
    tracing_from = tracing_options(conf)
    tracing.check(tracing_from)
    options = system_options(
        conf,
        script=Script(build_seconds, (FailureRule(failure_rate),) if failure_rate else (), seed),
        seed=seed,
    )

    async def run(layout: Layout, metrics: Path | None) -> None:
        tracing.start(tracing_from)
        async with counted(metrics):
            records = await open_system_records(conf, data_dir)
            system = await System.open(data_dir, layout, records, options)
            report_of(system, conf).on_signal()
            keep_what_is_loaded()
            try:
                announce = partial(_announce, data_dir, layout, listening)
                await serve(system, listeners, announce, listening.tls, drain_seconds, logs)
            finally:
                await system.close()
                tracing.stop()

    with closing(listeners), locked(data_dir), exposed(metrics_host, metrics_port) as metrics:
        asyncio.run(run(_layout(data_dir, hosts, cells, new_layout), metrics))


def _announce(data_dir: Path, layout: Layout, listening: Listening) -> None:
    click.echo(
        f"roost: up on {listening} with {layout.hosts} hosts in {len(layout.cells)} cells, "
        f"data in {data_dir}",
        err=True,
    )


def _layout(
    data_dir: Path, hosts: int | None, cells: int | None, new_layout: Callable[[int, int], Layout]
) -> Layout:
    kept = kept_layout(data_dir)
    if kept is None:
        return new_layout(hosts or DEFAULT_HOSTS, cells or DEFAULT_CELLS)
    if hosts not in (None, kept.hosts) or cells not in (None, len(kept.cells)):
        raise OperatorError(
            f"data directory {data_dir} was set up with {kept.hosts} hosts in {len(kept.cells)} cells, "
            f"not {hosts or kept.hosts} in {cells or len(kept.cells)}"
        )
    return kept

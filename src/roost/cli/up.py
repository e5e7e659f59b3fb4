"""``roost up``: the whole system as one long-running server."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path

import click

from roost.agent.drivers.simulated import FailureRule, Script
from roost.agent.drivers.simulated_profiles import numa_topology, pci_device_pools
from roost.cli.configuration import placement_source, print_warnings, tell_options
from roost.cli.connection import NO_TOKEN
from roost.cli.listen_options import ListenOptions, listening
from roost.cli.numbers import Number, WholeNumber
from roost.cli.options import (
    config_files,
    metrics_host,
    metrics_port,
    no_authentication,
    settings,
)
from roost.cli.profiles import ClientProfile, announced
from roost.model.errors import OperatorError
from roost.model.inventory import Inventory
from roost.placement.options import proxy_warnings
from roost.process.garbage_collection import keep_what_is_loaded
from roost.process.instrumentation import exposed, instrumented
from roost.process.logs import configure_logs
from roost.server.all_in_one.data_directory import in_directory, locked
from roost.server.all_in_one.layout import SystemLayout, kept_layout, uniform_layout
from roost.server.all_in_one.server import serve
from roost.server.all_in_one.system import System, SystemOptions, configured_cells, read_system_options
from roost.server.programs import check_exposure, check_options
from roost.server.workers.database_wait import on_servers, open_when_there, tell_away
from roost.server.workers.listeners import UnixAddress, listen
from roost.state.api_database.cell_mappings import CELL0

DEFAULT_HOSTS = 100
DEFAULT_CELLS = 3
MOST_HOSTS = 100_000
MOST_CELLS = 1_000
"""Most hosts and cells of one process. More are most likely a typing error, and would fill the memory."""


@click.command(epilog="Example: roost up --port 8778 --data-dir ./roost-data --hosts 100 --cells 3")
@listening
@click.option(
    "--drain-seconds",
    type=Number(0),
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
@click.option("--hosts", type=WholeNumber(1, MOST_HOSTS), help=f"Simulated hosts. [default: {DEFAULT_HOSTS}]")
@click.option("--cells", type=WholeNumber(1, MOST_CELLS), help=f"Cells. [default: {DEFAULT_CELLS}]")
@click.option("--host-vcpus", type=WholeNumber(min=1), default=64, show_default=True, help="vCPUs of a host.")
@click.option(
    "--host-memory-gib", type=WholeNumber(min=1), default=448, show_default=True, help="Memory of a host."
)
@click.option(
    "--host-disk-gib", type=WholeNumber(min=1), default=4000, show_default=True, help="Disk of a host."
)
@click.option(
    "--host-numa-cells",
    type=WholeNumber(0, 64),
    default=0,
    show_default=True,
    help="NUMA cells that a host reports, for NUMATopologyFilter.",
)
@click.option(
    "--host-pci-devices",
    type=WholeNumber(0, 256),
    default=0,
    show_default=True,
    help="PCI devices 10de:2236 that a host reports, dealt out to its NUMA cells, for PciPassthroughFilter.",
)
@click.option("--failure-rate", type=Number(0, 1), default=0.0, help="Share of builds that fail.")
@click.option("--build-seconds", type=Number(min=0), default=0.0, help="Duration of a build.")
@config_files
@settings
@click.option("--seed", type=WholeNumber(), default=42, show_default=True, help="Seed of all random numbers.")
@metrics_port
@metrics_host
@no_authentication
def up(
    listening: ListenOptions,
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
    config_files: tuple[str, ...],
    settings: tuple[str, ...],
    seed: int,
    metrics_port: int | None,
    metrics_host: str,
    insecure: bool,
) -> None:
    """Run placement, scheduler, conductors and cells of simulated hosts in one process.

    The Placement API is at /, the conductor's at /v1/instances. Databases are SQLite files in the data
    directory, except those that the configuration names: [placement_database], [api_database], and of cells
    [cell_NAME] and [cell0]. Tokens are not checked unless [api] auth_strategy says how. A cell that is down
    joins when its database comes. With the data directory of an earlier run or replay, the system continues
    in its last state, also after a crash.
    """
    inventory = {
        "VCPU": Inventory(host_vcpus),
        "MEMORY_MB": Inventory(host_memory_gib * 1024),
        "DISK_GB": Inventory(host_disk_gib),
    }
    if host_numa_cells > host_vcpus:
        raise click.UsageError(f"--host-numa-cells {host_numa_cells} is more than --host-vcpus {host_vcpus}")

    given = placement_source(config_files, settings)
    tell_options(given, "up", schedules=True)
    source = in_directory(given, data_dir)
    configured = configured_cells(source)
    named = [name for name in configured if name != CELL0]

    def new_layout(hosts: int, cells: int) -> SystemLayout:
        if named and cells != len(named):
            names = ", ".join(named)
            raise OperatorError(f"the configuration names {len(named)} cells, not {cells}: {names}")
        return uniform_layout(
            hosts,
            cells,
            inventory,
            numa_topology(host_numa_cells, host_vcpus, host_memory_gib * 1024),
            pci_device_pools(host_pci_devices, host_numa_cells),
            named,
        )

    options = read_system_options(
        source,
        configured,
        script=Script(build_seconds, (FailureRule(failure_rate),) if failure_rate else (), seed),
        seed=seed,
    )

    if options.auth_strategy == "noauth2":
        check_exposure(listening.host, allowed=insecure)
    check_options("up", options)
    print_warnings(proxy_warnings(options))
    configure_logs(options.logs)
    listeners = listen(listening.address, 1)
    profile = _profile(listening, options.auth_strategy)

    async def open_(layout: SystemLayout, stack: AsyncExitStack) -> System:
        system = await System.open(data_dir, layout, options)
        stack.push_async_callback(system.close)
        return system

    async def run(layout: SystemLayout, metrics: Path | None) -> None:
        async with instrumented(metrics, options.tracing) as watch, AsyncExitStack() as stack:
            system = await _open_when_there(stack, partial(open_, layout), options)
            system.report().on_signal()
            system.address = listening.url
            system.certificate = None if listening.tls is None else listening.tls.certificate
            keep_what_is_loaded()

            def announce() -> None:
                watch.begin()
                stack.enter_context(announced(data_dir, profile, os.environ))
                _announce(data_dir, layout, listening)

            await serve(system, listeners, announce, listening.tls, drain_seconds)

    with closing(listeners), locked(data_dir), exposed(metrics_host, metrics_port) as metrics:
        layout = _layout(data_dir, hosts, cells or len(named) or None, new_layout)
        asyncio.run(run(layout, metrics))


async def _open_when_there(
    stack: AsyncExitStack,
    open_: Callable[[AsyncExitStack], Awaitable[System]],
    options: SystemOptions,
) -> System:
    """Open a system once its database servers answer."""
    if not on_servers(options.databases.values()):
        return await open_(stack)

    async def away(error: OperatorError) -> None:
        tell_away(error)

    return await open_when_there(stack, open_, away)


def _announce(data_dir: Path, layout: SystemLayout, listening: ListenOptions) -> None:
    click.echo(
        f"roost: up on {listening} with {layout.hosts} hosts in {len(layout.cells)} cells, "
        f"data in {data_dir}",
        err=True,
    )


def _profile(listening: ListenOptions, auth_strategy: str) -> ClientProfile:
    """Return the profile by which commands on this machine find the system and trust its certificate."""
    where, tls = listening.address, listening.tls
    return ClientProfile(
        url=listening.url or f"{'http' if tls is None else 'https'}://localhost",
        socket=str(where.path) if isinstance(where, UnixAddress) else None,
        certificate=None if tls is None else str(tls.certificate),
        token=NO_TOKEN if auth_strategy == "noauth2" else None,
    )


def _layout(
    data_dir: Path, hosts: int | None, cells: int | None, new_layout: Callable[[int, int], SystemLayout]
) -> SystemLayout:
    kept = kept_layout(data_dir)
    if kept is None:
        return new_layout(hosts or DEFAULT_HOSTS, cells or DEFAULT_CELLS)
    if hosts not in (None, kept.hosts) or cells not in (None, len(kept.cells)):
        raise OperatorError(
            f"data directory {data_dir} was set up with {kept.hosts} hosts in {len(kept.cells)} cells, "
            f"not {hosts or kept.hosts} in {cells or len(kept.cells)}"
        )
    return kept

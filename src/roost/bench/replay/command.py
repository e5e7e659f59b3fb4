"""``roost replay``: a workload through the whole system, with figures and a plot."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Literal

import click
import msgspec
import numpy as np

from roost.agent.drivers.simulated import FailureRule, Script
from roost.bench.replay import azure, openb, synthetic
from roost.bench.replay.plot import check_plotting, draw
from roost.bench.replay.remote import RemoteReplay, calling
from roost.bench.replay.runner import WorkloadReplay, layout_of
from roost.bench.replay.state import ReplayState, open_state, save_state
from roost.bench.replay.summary import Summary, render
from roost.bench.replay.workload import Workload, WorkloadHostTree
from roost.cli.configuration import warn_of_options
from roost.cli.connection import ServiceConnection, connected_to
from roost.cli.failures import FOUND_WRONG
from roost.cli.numbers import Number, WholeNumber
from roost.cli.output import console, document_as_json
from roost.cli.progress import ProgressMeter, no_progress, progress
from roost.cli.verification import verdict, verify_database
from roost.process.garbage_collection import keep_what_is_loaded
from roost.process.logs import configure_logs
from roost.process.option_source import Source
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.weighers.fragmentation import FragmentationOptions, FragmentationWeigher
from roost.server.all_in_one.data_directory import API_DB, locked, only_in_directory
from roost.server.all_in_one.system import System, read_system_options
from roost.web.auth.credentials import FixedCredentials

AZURE_HOSTS = 820
"""Hosts of 64 vCPUs with which the peak of the Azure trace is near 85 % of CPU."""

DEMO_FAILURE_RATE = 0.03
"""Share of builds that fail in the demo, from 0 to 1."""


@click.command(
    epilog="Example: roost replay azure-v1 ./azure-v1 --bins 100 --failure-rate 0.02 --data-dir ./replay"
)
@click.argument("kind", type=click.Choice(["demo", "azure-v1", "openb"]))
@click.argument("directory", type=click.Path(path_type=Path), required=False, metavar="[DIR]")
@click.option("--bins", type=WholeNumber(min=1), help="Only the first N bins.")
@click.option("--hosts", type=WholeNumber(min=1), help=f"Hosts (azure-v1; default {AZURE_HOSTS}).")
@click.option("--host-vcpus", type=WholeNumber(min=1), default=64, help="vCPUs of a host (azure-v1).")
@click.option("--host-memory-gib", type=WholeNumber(min=1), default=448, help="GiB of a host (azure-v1).")
@click.option("--nodes", type=click.Choice(["all", "gpu"]), default="all", help="Which nodes (openb).")
@click.option(
    "--inflate",
    type=Number(min=0, min_open=True),
    help="Pods stay, and further ones are drawn until they ask for so many times the GPUs (openb). "
    f"[default: {openb.INFLATION}]",
)
@click.option(
    "--as-recorded",
    is_flag=True,
    help="Pods come and go as in the trace, which leaves 99 % of the GPUs free (openb).",
)
@click.option(
    "--fragmentation",
    is_flag=True,
    help="Weigh by FragmentationWeigher alone, with the pods of the trace as typical requests (openb).",
)
@click.option("--cells", type=WholeNumber(min=1), default=3, show_default=True, help="Number of cells.")
@click.option("--failure-rate", type=Number(0, 1), help="Share of builds that fail.")
@click.option(
    "--config-file", type=click.Path(path_type=Path), help="Options of scheduler, records, conductor."
)
@click.option("--seed", type=WholeNumber(), default=42, show_default=True, help="Seed of all random numbers.")
@click.option(
    "--speed",
    type=Number(min=0, min_open=True),
    help="Virtual seconds for each second of real time. [default: as fast as possible]",
)
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Folder of the databases. [default: roost-data/KIND]"
)
@click.option("--fresh", is_flag=True, help="Replace an unfinished replay in the data directory.")
@click.option("--plot", type=click.Path(path_type=Path), help="PNG of use over time. [default: in data-dir]")
@click.option("--no-plot", is_flag=True, help="Draw no plot. A plot needs matplotlib.")
@no_progress
@document_as_json
@connected_to("conductor")
def replay(
    kind: str,
    directory: Path | None,
    bins: int | None,
    hosts: int | None,
    host_vcpus: int,
    host_memory_gib: int,
    nodes: str,
    inflate: float | None,
    as_recorded: bool,
    fragmentation: bool,
    cells: int,
    failure_rate: float | None,
    config_file: Path | None,
    seed: int,
    speed: float | None,
    data_dir: Path | None,
    fresh: bool,
    connection: ServiceConnection,
    plot: Path | None,
    no_plot: bool,
    as_json: bool,
) -> None:
    """Replay a workload through placement, scheduler, conductors and cells of simulated hosts.

    KIND is demo (a built-in synthetic workload), azure-v1 or openb (a trace in DIR). An interrupted replay
    continues if it is started again with the same options. At the end the databases are
    verified, as by 'roost db verify'.

    With --url or --profile the system runs elsewhere: options of hosts, builds and databases do not apply,
    an interrupted replay is not continued, and nothing is plotted or verified. Requests of one bin for equal
    instances are sent as one, and deletions run while later requests are sent.
    """
    elsewhere = connection if connection.by_option else None
    if not no_plot and elsewhere is None:
        check_plotting()
    if kind != "demo" and directory is None:
        raise click.UsageError(f"a replay of {kind} needs the DIR of the trace")
    if kind != "openb" and (inflate is not None or as_recorded or fragmentation):
        raise click.UsageError("--inflate, --as-recorded and --fragmentation are for openb")
    if as_recorded and inflate is not None:
        raise click.UsageError("--inflate and --as-recorded exclude each other")
    if kind == "openb" and not as_recorded:
        inflate = inflate or openb.INFLATION
    shape = WorkloadHostTree(_shape(host_vcpus, host_memory_gib))
    workload = _workload(kind, directory, bins, hosts, shape, nodes, seed, inflate)
    if elsewhere is not None:
        _replay_over_http(workload, elsewhere, speed, as_json)
        return
    rate = failure_rate if failure_rate is not None else DEMO_FAILURE_RATE if kind == "demo" else 0.0
    into = data_dir or Path("roost-data") / kind
    source = only_in_directory(Source(() if config_file is None else (str(config_file),)), into)
    warn_of_options(config_file)
    script = Script(failures=(FailureRule(rate),) if rate else (), seed=seed)
    options = read_system_options(source, script=script, seed=seed)
    configure_logs(options.logs)
    scheduler = options.scheduler
    if fragmentation and directory is not None:
        scheduler = _by_fragmentation(scheduler, directory, into)
    # A replay counts refusals by their plain reason, and measures decisions.
    scheduler = msgspec.structs.replace(scheduler, explain_seconds=0.0)
    options = msgspec.structs.replace(options, scheduler=scheduler)
    parameters = {
        "workload": workload.name,
        "bins": str(len(workload.bins)),
        "hosts": str(len(workload.hosts)),
        "instances": str(workload.instances),
        "cells": str(cells),
        "failure rate": str(rate),
        "max attempts": str(options.max_attempts),
        "weighers": ", ".join(scheduler.weighers),
        "inflated": str(inflate),
        "seed": str(seed),
    }

    async def run(state: ReplayState, meter: ProgressMeter) -> Summary:
        system = await System.open(into, layout_of(workload, cells), options)
        system.report().on_signal()
        keep_what_is_loaded()
        try:
            bins = len(workload.bins)
            meter.begin(workload.name, "bins", state.next_bin, bins)
            running = WorkloadReplay(workload, system, state, seed, speed)

            def on_bin(done: int) -> None:
                counts = state.counts
                detail = f"{counts.placed:,} placed, {counts.refused:,} refused, {counts.failed:,} failed"
                meter.show(workload.name, "bins", done, bins, detail)

            return await running.run(on_bin)
        finally:
            await system.close()

    with locked(into):
        state = open_state(into, parameters, fresh)
        save_state(into, state)
        with progress(workload.name) as meter:
            summary = asyncio.run(run(state, meter))
            meter.begin("verify", "commits")
            findings, _, verified = asyncio.run(
                verify_database(f"sqlite:///{into.resolve() / API_DB}", meter.count)
            )
    plot_file = None if no_plot else plot or into / "replay.png"
    if plot_file is not None:
        title = f"{workload.name}: {len(workload.hosts):,} hosts in {cells} cells, {rate:.0%} of builds fail"
        draw(state.samples, plot_file, title, workload.in_order)
    if as_json:
        differences = [msgspec.to_builtins(finding) for finding in findings]
        click.echo(json.dumps({**summary.to_dict(), "differences": differences}, indent=2))
    else:
        console().print(render(summary))
        if inflate is not None:
            as_published = inflate == openb.INFLATION and nodes == "all" and hosts is None and bins is None
            click.echo(_gpu_allocation(summary, as_published))
        for finding in findings:
            click.echo(f"{finding.kind} {finding.subject}: {finding.detail}")
        click.echo(verdict(findings, verified))
        if plot_file is not None:
            click.echo(f"plot: {plot_file}")
        click.echo(f"data: {into}")
    if summary.unaccounted or findings:
        sys.exit(FOUND_WRONG)


def _replay_over_http(
    workload: Workload, conductor: ServiceConnection, speed: float | None, as_json: bool
) -> None:
    """Replay a workload over HTTP through a running system, and print the figures."""

    credentials = FixedCredentials(conductor.url, conductor.bearer())
    way = conductor.async_way()

    async def run(meter: ProgressMeter) -> Summary:
        meter.begin(workload.name, "bins", total=len(workload.bins))
        async with calling(credentials, **way) as caller:
            return await RemoteReplay(workload, caller, speed).run(
                lambda done: meter.count(done, meter.total)
            )

    with progress(workload.name) as meter:
        summary = asyncio.run(run(meter))
    if as_json:
        click.echo(json.dumps(summary.to_dict(), indent=2))
    else:
        console().print(render(summary))
    if summary.unaccounted:
        sys.exit(FOUND_WRONG)


def _workload(
    kind: str,
    directory: Path | None,
    bins: int | None,
    hosts: int | None,
    shape: WorkloadHostTree,
    nodes: str,
    seed: int,
    inflate: float | None,
) -> Workload:
    if directory is None:
        workload = synthetic.generate(np.random.default_rng(seed))
    elif kind == "azure-v1":
        return azure.read(directory, bins, hosts or AZURE_HOSTS, shape)
    else:
        which: Literal["all", "gpu"] = "gpu" if nodes == "gpu" else "all"
        workload = openb.read(directory, which, inflate=inflate, seed=seed)
    return workload.first(bins, hosts)


def _by_fragmentation(options: SchedulerOptions, trace: Path, into: Path) -> SchedulerOptions:
    """Return the scheduler's options with only the weigher of fragmentation, for the pods of a trace."""
    into.mkdir(parents=True, exist_ok=True)
    file = into / "typical-requests.json"
    file.write_bytes(msgspec.json.encode(openb.typical_requests(trace)))
    own = FragmentationOptions(openb.GPU, str(file))
    return msgspec.structs.replace(
        options,
        weighers=(FragmentationWeigher.name,),
        plugins={**options.plugins, FragmentationWeigher.name: own},
    )


def _gpu_allocation(summary: Summary, as_published: bool) -> str:
    """Return the share of GPU that is allocated at the end, beside the published shares.

    ``as_published``: the nodes and the demand are those for which shares are published.
    """
    text = f"GPU allocation: {100 * summary.peak_use.get(openb.GPU, 0.0):.2f} %"
    if not as_published:
        return text
    published = ", ".join(f"{name} {share} %" for name, share in openb.PUBLISHED_GPU_ALLOCATION.items())
    return f"{text} (published at 130 % on all nodes: {published})"


def _shape(vcpus: int, memory_gib: int) -> dict[str, int]:
    return {"VCPU": vcpus, "MEMORY_MB": memory_gib * 1024}

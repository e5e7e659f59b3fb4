"""``roost replay``: a workload through the whole system, with figures and a plot, or settings compared."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click
import msgspec
import numpy as np

from roost.bench.replay import azure, openb, synthetic
from roost.bench.replay.comparison import (
    ReplaySetting,
    SettingOutcome,
    parse_settings,
    render_comparison,
)
from roost.bench.replay.comparison_plot import check_format, draw_comparison
from roost.bench.replay.local import LocalReplay
from roost.bench.replay.plot import check_plotting, draw
from roost.bench.replay.remote import RemoteReplay, calling
from roost.bench.replay.state import is_finished
from roost.bench.replay.summary import Summary, render
from roost.bench.replay.workload import Workload, WorkloadHostTree
from roost.cli.configuration import options_without_effect, print_warnings, warn_of_options
from roost.cli.connection import ServiceConnection, connected_to
from roost.cli.failures import FOUND_WRONG
from roost.cli.numbers import Number, WholeNumber
from roost.cli.output import console, document_as_json
from roost.cli.progress import ProgressMeter, no_progress, progress
from roost.cli.verification import verdict
from roost.process.option_source import Source
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
@click.option(
    "--compare",
    "compared",
    metavar="NAME[:OPTION|:FILE]",
    multiple=True,
    help="Replay once for each NAME, with GROUP.OPTION=VALUE or a file of options; compare the results.",
)
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
    compared: tuple[str, ...],
    connection: ServiceConnection,
    plot: Path | None,
    no_plot: bool,
    as_json: bool,
) -> None:
    """Replay a workload through placement, scheduler, conductors and cells of simulated hosts.

    KIND is demo (a built-in synthetic workload), azure-v1 or openb (a trace in DIR). An interrupted replay
    continues if it is started again with the same options. At the end the databases are
    verified, as by 'roost db verify'.

    With --compare the workload is replayed once for each of the named settings, and a table and a plot show
    the hosts needed, the empty hosts and the refusals side by side. A NAME alone has the options of
    --config-file; NAME:GROUP.OPTION=VALUE, which may be repeated, and NAME:FILE change them.

    With --url or --profile the system runs elsewhere: options of hosts, builds and databases do not apply,
    an interrupted replay is not continued, and nothing is plotted or verified. Requests of one bin for equal
    instances are sent as one, and deletions run while later requests are sent.
    """
    elsewhere = connection if connection.by_option else None
    settings = parse_settings(compared) if compared else ()
    if settings and elsewhere is not None:
        raise click.UsageError("--compare changes options, which a system elsewhere has by itself")
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
    warn_of_options(config_file)
    source = Source(() if config_file is None else (str(config_file),))
    trace = directory if fragmentation else None
    replaying = LocalReplay(workload, cells, rate, seed, speed, inflate, trace)
    if settings:
        _compare(replaying, settings, source, into, plot, fresh=fresh, no_plot=no_plot, as_json=as_json)
        return
    done = replaying.run(source, into, fresh=fresh)
    plot_file = None if no_plot else plot or into / "replay.png"
    if plot_file is not None:
        draw(done.samples, plot_file, replaying.title, workload.in_order)
    if as_json:
        differences = [msgspec.to_builtins(finding) for finding in done.findings]
        click.echo(json.dumps({**done.summary.to_dict(), "differences": differences}, indent=2))
    else:
        console().print(render(done.summary))
        if inflate is not None:
            as_published = inflate == openb.INFLATION and nodes == "all" and hosts is None and bins is None
            click.echo(_gpu_allocation(done.summary, as_published))
        for finding in done.findings:
            click.echo(f"{finding.kind} {finding.subject}: {finding.detail}")
        click.echo(verdict(done.findings, done.verified))
        if plot_file is not None:
            click.echo(f"plot: {plot_file}")
        click.echo(f"data: {into}")
    if done.summary.unaccounted or done.findings:
        sys.exit(FOUND_WRONG)


def _compare(
    replaying: LocalReplay,
    settings: Sequence[ReplaySetting],
    base: Source,
    into: Path,
    plot: Path | None,
    *,
    fresh: bool,
    no_plot: bool,
    as_json: bool,
) -> None:
    """Replay the workload with each setting, and print and plot the figures side by side."""
    sources = [each.source(base) for each in settings]
    for source in sources:
        print_warnings(options_without_effect(source, schedules=True))
        replaying.options(source, into)
    plot_file = None if no_plot else plot or into / "comparison.png"
    if plot_file is not None:
        check_format(plot_file)
    folders = [into / each.name for each in settings]
    # An interrupted comparison goes on where it was: finished replays are kept until all of them are.
    keeps = not all(is_finished(folder) for folder in folders)
    outcomes, wrong = [], False
    for number, (setting, source, folder) in enumerate(zip(settings, sources, folders, strict=True)):
        step = f"{setting.name} ({number + 1} of {len(settings)})"
        done = replaying.run(source, folder, step, fresh=fresh, keep_finished=keeps)
        outcomes.append(SettingOutcome.of(setting, done.summary, done.samples))
        for finding in done.findings:
            click.echo(f"{setting.name}: {finding.kind} {finding.subject}: {finding.detail}", err=True)
        wrong = wrong or bool(done.findings or done.summary.unaccounted)
    workload = replaying.workload
    if plot_file is not None:
        draw_comparison(outcomes, plot_file, replaying.title, workload.in_order)
    if as_json:
        compared = [each.to_dict() for each in outcomes]
        click.echo(json.dumps({"workload": workload.name, "settings": compared}, indent=2))
    else:
        console().print(render_comparison(outcomes))
        if plot_file is not None:
            click.echo(f"plot: {plot_file}")
        click.echo(f"data: {into}")
    if wrong:
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

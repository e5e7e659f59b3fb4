"""``roost agent``: the agent of one host, or of many simulated ones."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import click

from roost.agent.drivers.driver_loader import BUILT_IN
from roost.agent.errors import ComputeError
from roost.agent.options import AgentOptions
from roost.agent.persistent_state import accept as accept_state
from roost.agent.program import AgentPlan, read_tokens, run_agents
from roost.agent.protocol.exposure import CHANGE, exposure_of
from roost.cli.configuration import placement_source, print_warnings, tell_options
from roost.cli.numbers import WholeNumber
from roost.cli.options import config_files, metrics_host, metrics_port, settings
from roost.model.errors import OperatorError
from roost.process import tracing
from roost.process.instrumentation import exposed, instrumented
from roost.process.logs import configure_logs
from roost.process.option_source import Source
from roost.server.workers.notify import Notifier

_FILE = click.Path(path_type=Path)


@click.command(
    epilog="Example: roost agent --endpoint https://cell1.example:8781 --host compute-1 "
    "--token-file /etc/roost/token --state-dir /var/lib/roost-agent"
)
@click.option("--endpoint", metavar="URL", help="The endpoint of the cell: where its cell-conductor serves.")
@click.option("--host", help="The name of the host.")
@click.option("--hosts", type=WholeNumber(1), help="Play this many hosts instead, PREFIX0001 and so on.")
@click.option("--host-prefix", default="host-", show_default=True, help="How the names of --hosts begin.")
@click.option("--token-file", type=_FILE, help="One host and its token a line, as roost host add writes it.")
@click.option(
    "--state-dir",
    type=_FILE,
    required=True,
    help="Folder of what the agent keeps between its runs; with --hosts each host has a folder in it.",
)
@click.option("--ca-file", type=_FILE, help="Authorities of the endpoint's certificate, in PEM.")
@click.option("--cert", type=_FILE, help="The agent's certificate, in PEM, if the endpoint asks for one.")
@click.option("--key", type=_FILE, help="The private key of --cert, in PEM.")
@click.option("--driver", help="The driver that builds guests.  [default: driver in [agent], simulated]")
@click.option(
    "--accept",
    is_flag=True,
    help="Accept the state of the cell's database, for an agent that is held, and end.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Check options, tokens, directories and the endpoint, say what to change, and end.",
)
@config_files
@settings
@metrics_port
@metrics_host
def agent(
    endpoint: str | None,
    host: str | None,
    hosts: int | None,
    host_prefix: str,
    token_file: Path | None,
    state_dir: Path,
    ca_file: Path | None,
    cert: Path | None,
    key: Path | None,
    driver: str | None,
    accept: bool,
    check: bool,
    config_files: tuple[str, ...],
    settings: tuple[str, ...],
    metrics_port: int | None,
    metrics_host: str,
) -> None:
    """Run the agent of a host: it builds and destroys guests as its cell orders, and reports the host.

    It needs no access to any database and listens on no port. It may be killed at any time: guests stay.

    Exit status of --check: 0 all is well, 1 there are warnings, 2 there are failures.
    """
    if (host is None) == (hosts is None):
        raise click.UsageError("name one --host, or the number of --hosts")
    directories = (
        {host: state_dir}
        if host is not None
        else {name: state_dir / name for name in host_names(hosts or 0, host_prefix)}
    )
    try:
        if accept:
            for directory in directories.values():
                accept_state(directory)
            return
        if endpoint is None or token_file is None:
            missing = "--endpoint" if endpoint is None else "--token-file"
            raise click.UsageError(f"{missing} is missing")
        _check_url(endpoint)
        source = placement_source(config_files, settings)
        if check:
            _check(
                directories,
                endpoint,
                token_file,
                source,
                authority=ca_file,
                certificate=cert,
                key=key,
                driver=driver,
            )
        options = source.read(AgentOptions)
        chosen = driver or options.driver
        if chosen in BUILT_IN:
            # Only the chosen driver knows its options.
            tell_options(source, "agent", schedules=True, driver=chosen)
        if (exposure := exposure_of(endpoint)) is not None:
            print_warnings([f"{exposure}: {CHANGE}"])
        plan = AgentPlan(
            hosts=directories,
            endpoint=endpoint,
            tokens=read_tokens(token_file, list(directories)),
            source=source,
            authority=ca_file,
            certificate=cert,
            key=key,
            driver=driver,
        )
        tracing.check(options.tracing)
        configure_logs(options.logs)
        with exposed(metrics_host, metrics_port) as metrics:
            asyncio.run(_run(plan, options.tracing, metrics))
    except* ComputeError as errors:
        raise OperatorError("; ".join(map(str, errors.exceptions))) from errors


async def _run(plan: AgentPlan, traces: tracing.TracingOptions, metrics: Path | None) -> None:
    notifier = Notifier()
    named = next(iter(plan.hosts)) if len(plan.hosts) == 1 else f"{len(plan.hosts)} hosts"

    def ready() -> None:
        watch.begin()
        click.echo(f"roost: agent of {named} at {plan.endpoint}", err=True)
        notifier.ready()

    async with instrumented(metrics, traces) as watch:
        try:
            await run_agents(plan, ready)
        finally:
            notifier.stopping()


def _check(
    directories: Mapping[str, Path], endpoint: str, token_file: Path, source: Source, **named: Any
) -> NoReturn:
    """Check the configuration of an agent, and exit."""
    # Imported only here: an agent that runs does not need it.
    from roost.cli.doctor import print_findings, status_of
    from roost.cli.doctor.agent import CHECKS, CheckedAgent
    from roost.cli.doctor.check import run_checks

    checked = CheckedAgent(
        hosts=directories, endpoint=endpoint, token_file=token_file, source=source, **named
    )
    findings = list(run_checks(CHECKS, checked))
    print_findings(findings)
    raise SystemExit(status_of(findings))


def _check_url(endpoint: str) -> None:
    """Raise `UsageError` if the endpoint is not a usable URL."""
    try:
        parts = urlsplit(endpoint)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise click.UsageError(f"--endpoint {endpoint!r} is no URL: write https://HOST:PORT")


def host_names(number: int, prefix: str) -> list[str]:
    """Return the names of simulated hosts: ``host-0001`` and so on."""
    return [f"{prefix}{each:04}" for each in range(1, number + 1)]

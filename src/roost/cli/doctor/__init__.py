"""``roost doctor``: checks a configuration, and the services and databases that it names.

check           checks and their findings, and the deployment that they check
configuration   options, tokens, policy, permissions
database        reachable, revision, settings, clock, trimming
machine         disk, processors, open files, port
service         the running service and its metrics
conductor       databases of the conductors and cells, placement and scheduler over HTTP, records
scheduler       placement over HTTP, hosts, cells, node journal, records
nova            nova.conf, the bridge's database, the broker, placement, Nova's databases and schedulers
agent           options, tokens and directories of an agent, the endpoint of its cell: `roost agent --check`
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import click
from click.core import ParameterSource
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roost.cli.configuration import placement_source
from roost.cli.doctor import conductor, configuration, database, machine, scheduler, service
from roost.cli.doctor.check import Deployment, DoctorCheck, DoctorFinding, run_checks
from roost.cli.listen_options import ListenOptions, listening_at
from roost.cli.nova_configuration import is_nova_conf
from roost.cli.options import config_files, placement_database, settings
from roost.cli.output import as_json, print_json
from roost.cli.programs import CELL_PORT, CONDUCTOR_PORT, NOVA_PORT, PLACEMENT_PORT, SCHEDULER_PORT
from roost.cli.workers import WorkerCount
from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.server.workers.listeners import Address

CHECKS: Final = (*configuration.CHECKS, *database.CHECKS, *machine.CHECKS, *service.CHECKS)
"""All checks, in the order in which they run: a check follows those whose results it needs."""

OF_CONDUCTORS: Final = (*CHECKS, *conductor.CHECKS)
"""All checks of `roost conductor` and `roost cell-conductor`."""

OF_SCHEDULERS: Final = (*CHECKS, *scheduler.CHECKS)
"""All checks of `roost scheduler`."""

_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red", "skip": "dim"}


@click.command(epilog="Example: roost doctor --config-file /etc/placement/placement.conf --workers 4")
@listening_at(PLACEMENT_PORT, "that of the program")
@placement_database
@click.option("--workers", type=WorkerCount(), default="1", show_default=True, help="Processes.")
@click.option("--metrics", metavar="URL", help="The metrics address of the running service.")
@click.option("--scheduler", "schedules", is_flag=True, help="Check the configuration of roost scheduler.")
@click.option("--conductor", "conducts", is_flag=True, help="Check the configuration of roost conductor.")
@click.option("--cell-conductor", "cell", metavar="NAME", help="Check that of roost cell-conductor NAME.")
@config_files
@settings
@as_json
@click.pass_context
def doctor(
    context: click.Context,
    listening: ListenOptions,
    database: str | None,
    workers: int,
    metrics: str | None,
    schedules: bool,
    conducts: bool,
    cell: str | None,
    config_files: tuple[str, ...],
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check a configuration and what it names, and say what to change.

    Takes the options of 'roost serve', or with --scheduler, --conductor or --cell-conductor those of these
    programs, or with a nova.conf those of 'roost nova-scheduler'. Nothing is changed, and the service may run
    meanwhile or not. An agent's is checked by 'roost agent --check'.

    Exit status: 0 all is well, 1 there are warnings, 2 there are failures.
    """
    if schedules + conducts + (cell is not None) > 1:
        raise click.UsageError("give one of --scheduler, --conductor and --cell-conductor")
    source = placement_source(config_files, settings)
    conducts = conducts or cell is not None
    bridges = not (schedules or conducts) and _is_nova_conf(source)
    if context.get_parameter_source("port") is ParameterSource.DEFAULT:
        of_conductor = CONDUCTOR_PORT if cell is None else CELL_PORT
        of_scheduler = SCHEDULER_PORT if schedules else NOVA_PORT if bridges else PLACEMENT_PORT
        listening = _at(listening, of_conductor if conducts else of_scheduler)
    deployment = Deployment(source, listening, database, workers, metrics, schedules or conducts, cell)
    checks = _checks(deployment, conducts, bridges)
    try:
        findings = list(run_checks(checks, deployment))
    finally:
        asyncio.run(deployment.close())
    print_findings(findings, as_json=as_json)
    raise SystemExit(status_of(findings))


def _is_nova_conf(source: Source) -> bool:
    """Return whether the options are those of a Nova cloud."""
    try:
        return is_nova_conf(source)
    except OperatorError:
        return False  # a file that cannot be read is a finding of the first check


def _at(listening: ListenOptions, port: int) -> ListenOptions:
    """Return the options with another port, where they name one."""
    address = listening.address
    return (
        replace(listening, address=address._replace(port=port)) if isinstance(address, Address) else listening
    )


def _checks(deployment: Deployment, conducts: bool, bridges: bool) -> Sequence[DoctorCheck[Deployment]]:
    """Return the checks of the program that a deployment is of."""
    if deployment.schedules:
        return OF_CONDUCTORS if conducts else OF_SCHEDULERS
    if bridges:
        # Imported only here: other programs know nothing of Nova's databases.
        from roost.cli.doctor import nova

        return nova.CHECKS
    return CHECKS


def status_of(findings: list[DoctorFinding]) -> int:
    """Return the exit status: 0 all is well, 1 there are warnings, 2 there are failures."""
    levels = {each.level for each in findings}
    return 2 if "fail" in levels else 1 if "warn" in levels else 0


def print_findings(findings: list[DoctorFinding], *, as_json: bool = False) -> None:
    """Print findings as a table or as JSON."""
    if as_json:
        print_json(findings)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("", "check", "found"):
        table.add_column(column, overflow="fold", no_wrap=column == "")
    for each in findings:
        table.add_row(Text(each.level, _STYLES[each.level]), each.check, Text(each.says))
        if each.change:
            table.add_row("", "", Text(f"→ {each.change}", "bold"))
    Console(markup=False, highlight=False).print(table)

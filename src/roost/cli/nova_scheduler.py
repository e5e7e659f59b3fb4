"""``roost nova-scheduler``: the scheduler of an existing Nova cloud."""

from dataclasses import replace

import click

from roost.cli.command_group import CommandGroup
from roost.cli.configuration import check_settings
from roost.cli.nova_configuration import tell_nova_options
from roost.cli.options import placement_database
from roost.cli.programs import NOVA_PORT, ServingOptions, serve_program, serving_at
from roost.cli.shadow_report import report
from roost.model.errors import OperatorError
from roost.server.nova_options import read_nova_options


@click.group(
    "nova-scheduler",
    cls=CommandGroup,
    invoke_without_command=True,
    epilog="Example: roost nova-scheduler --config-file /etc/nova/nova.conf --config-file roost.conf",
)
@placement_database
@serving_at(NOVA_PORT)
@click.pass_context
def nova_scheduler(context: click.Context, serving: ServingOptions, database: str | None) -> None:
    """Serve as the scheduler of an existing Nova cloud, beside its own or alone.

    It answers the calls of Nova's conductors over the message broker of nova.conf, and reads the hosts from
    Nova's databases. Claims are made on the ledger of [placement_database] if there is one, else in the
    placement service of [placement]. Its own database is connection in [nova_bridge]. At --port are health,
    records and reasons. 'roost doctor --config-file nova.conf' says what it takes of the file. In shadow
    mode, mode in [nova_bridge], it answers nothing, and compares its decisions with Nova's.
    """
    if context.invoked_subcommand is not None:
        return
    check_settings(serving.source, "nova-scheduler")
    tell_nova_options(serving.source)
    if serving.rules.workers != 1:
        raise OperatorError(
            "--workers: roost nova-scheduler has one worker, which decides thousands a second"
        )
    # The supervisor kills a worker that takes longer to end.
    drain_seconds = read_nova_options(serving.source).drain_seconds(serving.rules.drain_seconds)
    serving = serving._replace(rules=replace(serving.rules, drain_seconds=drain_seconds))
    serve_program("nova-scheduler", read_nova_options, serving, "scheduler of Nova", database)


nova_scheduler.add_command(report)

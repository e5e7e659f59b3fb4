"""``roost bench``: the commands that measure and print the project's figures.

Each command is in a module of its name.

all                                 ``roost bench all`` and ``roost bench render``
candidates, claims, contention      requests to the Placement API
filters, decide                     suitable hosts, scheduling decisions
limits, metrics, start, overload    limits of the machine, cost of metrics, cold start, overload
agents, reshape                     clouds of agents
peer_setup                          the installation of OpenStack Placement
replay                              ``roost replay``
options                             shared options, and the output of a report
"""

import click

from roost.bench.cli.agents import agents
from roost.bench.cli.all import all_command, render
from roost.bench.cli.candidates import candidates
from roost.bench.cli.claims import claims
from roost.bench.cli.contention import contention
from roost.bench.cli.decide import decide
from roost.bench.cli.filters import filters
from roost.bench.cli.limits import limits
from roost.bench.cli.metrics import metrics
from roost.bench.cli.overload import overload
from roost.bench.cli.peer_setup import peer_setup
from roost.bench.cli.reshape import reshape
from roost.bench.cli.start import start
from roost.bench.progress import show_with
from roost.cli.command_group import CommandGroup
from roost.cli.progress import no_progress, progress


@click.group(cls=CommandGroup, epilog="Example: roost bench candidates --hosts 1000 --hosts 10000 --peer")
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure Roost on fleets that are made once and kept in the bench directory.

    With --peer OpenStack Placement does the same work in turns with Roost, and the ratio is printed; 'roost
    bench peer-setup' installs it. A replay prints figures of its own: see 'roost replay'.
    """
    show_with(context.with_resource(progress("bench")).show)
    context.call_on_close(lambda: show_with(None))


COMMANDS = (
    candidates,
    claims,
    contention,
    filters,
    decide,
    start,
    limits,
    overload,
    metrics,
    agents,
    reshape,
    all_command,
    render,
    peer_setup,
)

for command in COMMANDS:
    bench.add_command(no_progress(command))

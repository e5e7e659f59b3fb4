"""``roost redfish``: the bare metal nodes of an agent, on the machine of the agent."""

import asyncio
from pathlib import Path

import click
import msgspec

from roost.agent.drivers.redfish.errors import RedfishError
from roost.agent.drivers.redfish.words import NodeOrder, NodeStatus, read_statuses, send_order
from roost.cli.command_group import CommandGroup
from roost.cli.numbers import Number
from roost.cli.output import as_json, print_json, print_table
from roost.model.errors import OperatorError

state_dir = click.option(
    "--state-dir",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The state directory of the agent.",
)
node = click.argument("node", metavar="NODE")


@click.group(cls=CommandGroup)
def redfish() -> None:
    """Show and clean the bare metal nodes of an agent, on its machine and by its state directory.

    The agent does what was said when it next looks at its nodes; it need not run meanwhile. `power-off` is
    for any machine with a BMC, and needs no agent.

    Exit status: 0 done, 2 could not run.
    """


@redfish.command(epilog="Example: roost redfish nodes --state-dir /var/lib/roost-agent --reserved")
@state_dir
@click.option("--reserved", is_flag=True, help="Only nodes that are not offered, and why.")
@as_json
def nodes(state_dir: Path, reserved: bool, as_json: bool) -> None:
    """List nodes as the agent saw them last. Other commands take a name or uuid of this list as NODE."""
    found = [each for each in read_statuses(state_dir).nodes if each.phase != "free" or not reserved]
    if as_json:
        print_json({"nodes": [msgspec.to_builtins(each) for each in found]})
        return
    rows = [
        (
            each.name,
            each.uuid,
            each.resource_class,
            {True: "on", False: "off", None: "unknown"}[each.on],
            each.phase,
            each.instance or "",
            _why(each),
        )
        for each in found
    ]
    print_table(("node", "uuid", "class", "power", "phase", "instance", "why it is not offered"), rows)


@redfish.command(epilog="Example: roost redfish clean --state-dir /var/lib/roost-agent rack1-07")
@state_dir
@node
def clean(state_dir: Path, node: str) -> None:
    """Clean a node once more that was not cleaned."""
    _say(state_dir, node, "clean")


@redfish.command(epilog="Example: roost redfish release --state-dir /var/lib/roost-agent rack1-07")
@state_dir
@node
def release(state_dir: Path, node: str) -> None:
    """Offer a node although it was not cleaned: its next user finds what the last one left on it."""
    _say(state_dir, node, "release")


@redfish.command("power-off", epilog="Example: roost redfish power-off --nodes /etc/roost/bmcs.toml rack1-07")
@click.option(
    "--nodes",
    "file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of machines and their BMCs, as that of [redfish] nodes.",
)
@click.option(
    "--seconds",
    type=Number(0, min_open=True),
    default=40.0,
    show_default=True,
    help="It must be off within this time.",
)
@click.argument("name", metavar="MACHINE")
def power_off(file: Path, seconds: float, name: str) -> None:
    """Take the power of a machine by its BMC, and wait until the BMC says that it is off.

    It needs no agent. It is made for [conductor] fence_command, which gives it the name of a silent host.
    """
    from roost.agent.drivers.redfish.power_off import power_off as take_power

    try:
        asyncio.run(take_power(file, name, seconds=seconds, request_seconds=min(10.0, seconds)))
    except RedfishError as error:
        raise OperatorError(f"machine {name} is not known to be off: {error}") from error
    click.echo(f"machine {name} is off")


def _say(state_dir: Path, node: str, word: NodeOrder) -> None:
    status = send_order(state_dir, node, word)
    told = {"clean": "is cleaned", "release": "is offered as it is"}[word]
    click.echo(f"node {status.name} {told} at the next look of the agent")


def _why(status: NodeStatus) -> str:
    # The column before shows that it has an instance.
    return "" if status.phase in ("building", "starting", "running", "stopped", "ending") else status.why

"""``roost maintenance``: many hosts are emptied in few groups, each into all the others, and worked on."""

from collections.abc import Mapping
from typing import Any

import click

from roost.cli.command_group import CommandGroup
from roost.cli.host_selection import HostSelection, host_selection
from roost.cli.maintenance_runs import MAINTENANCE_RUNS, PATH
from roost.cli.numbers import WholeNumber
from roost.cli.output import as_json, note, print_json, print_table
from roost.cli.service_client import ServiceClient, with_conductor


@click.group(cls=CommandGroup)
def maintenance() -> None:
    """Maintain many hosts: in few groups (waves), each emptied into all the others.

    Exit status: 0 done, 1 hosts cannot be emptied or were left out, 2 could not run.
    """


@maintenance.command(epilog="Example: roost maintenance plan --cell cell1 --moves")
@host_selection
@click.option("--no-reserve", is_flag=True, help="Leave no room for the instances of one more host.")
@click.option("--most-hosts", type=WholeNumber(min=1), metavar="N", help="At most N hosts in a wave.")
@click.option("--moves", is_flag=True, help="Print each move.")
@as_json
@with_conductor
def plan(
    conductor: ServiceClient,
    selection: HostSelection,
    no_reserve: bool,
    most_hosts: int | None,
    moves: bool,
    as_json: bool,
) -> None:
    """Plan in which groups hosts can be emptied, and where their instances go. Nothing is changed.

    After each wave its hosts take instances again. No instance moves more than twice, no server group is
    broken, and outside each wave there is room for the instances of one more host. Hosts that cannot be
    emptied are named with the reason; the exit status is 1 then.
    """
    body = {"hosts": selection.names(conductor), "reserve": not no_reserve, "most_hosts": most_hosts}
    found = conductor.ask("POST", f"{PATH}/plan", body)
    if as_json:
        print_json(found)
    else:
        _tell(found, moves)
    if found["left_out"]:
        raise SystemExit(1)


def _tell(found: Mapping[str, Any], moves: bool) -> None:
    rows = [
        (str(number), str(len(wave["hosts"])), str(len(wave["moves"])), _named(wave["hosts"]))
        for number, wave in enumerate(found["waves"], 1)
    ]
    print_table(("wave", "hosts", "moves", "these"), rows)
    note(f"{len(rows)} waves, {found['moves']} moves; at least {found['least_waves']}: {found['bound']}")
    if moves:
        moving = [
            (str(number), each["instance"], each["source_host"], each["target_host"])
            for number, wave in enumerate(found["waves"], 1)
            for each in wave["moves"]
        ]
        print_table(("wave", "instance", "from", "to"), moving)
    for number, wave in enumerate(found["waves"], 1):
        if wave["unsheltered"]:
            note(f"wave {number}: the instances of {wave['unsheltered']} hosts outside fit on no others now")
    if found["left_out"]:
        left = [(each["host"], each["reason"]) for each in found["left_out"]]
        print_table(("cannot be emptied", "why"), left)


def _named(hosts: list[str]) -> str:
    """Return the names of the first hosts."""
    shown = 6
    more = f" and {len(hosts) - shown} more" if len(hosts) > shown else ""
    return f"{', '.join(hosts[:shown])}{more}"


for _command in MAINTENANCE_RUNS:
    maintenance.add_command(_command)

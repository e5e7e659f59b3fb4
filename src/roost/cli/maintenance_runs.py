"""``roost maintenance`` beside its plans: maintenances are started, paused, cancelled and shown."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from roost.cli.drain import WAIT_SECONDS
from roost.cli.host_selection import HostSelection, host_selection
from roost.cli.numbers import WholeNumber
from roost.cli.output import action_as_json, as_json, note, print_json, print_table
from roost.cli.progress import no_progress, progress
from roost.cli.service_client import ServiceClient, part_of_path, with_conductor

PATH: Final = "/v1/maintenances"
_SHOWN: Final = "disabling,emptying,in-work,returning,left-out"
"""The states of hosts that are shown one by one."""

F = TypeVar("F", bound=Callable[..., Any])

_named = click.argument("uuid", required=False, metavar="[MAINTENANCE]")
_wait = click.option("--wait", is_flag=True, help="Wait until it has ended, or is paused.")


@click.command(epilog="Example: roost maintenance start --cell cell1 --wait")
@host_selection
@click.option("--no-reserve", is_flag=True, help="Leave no room for the instances of one more host.")
@click.option("--most-hosts", type=WholeNumber(min=1), metavar="N", help="At most N hosts in a wave.")
@click.option("--keep-going", is_flag=True, help="Do not pause when a host is left out.")
@click.option("--maintenance", "uuid", metavar="UUID", help="Resume this one.")
@_wait
@no_progress
@action_as_json
@with_conductor
def start(
    conductor: ServiceClient,
    selection: HostSelection,
    no_reserve: bool,
    most_hosts: int | None,
    keep_going: bool,
    uuid: str | None,
    wait: bool,
    as_json: bool,
) -> None:
    """Start the maintenance of hosts; without hosts, resume the one that is paused.

    Wave by wave the hosts are disabled and emptied. For each host that is empty the hook of the configuration
    is called; without one the host waits for `roost maintenance done`. Then it is enabled again. A host that
    cannot be emptied, or for which the hook fails, is left out with the reason, and the maintenance pauses.
    """
    if selection.is_empty:
        if no_reserve or most_hosts is not None or keep_going:
            raise click.UsageError("no hosts are selected: name HOST, --cell, --aggregate or --all")
        found = _word(conductor, _one(conductor, uuid), "resume")
    elif uuid is not None:
        raise click.UsageError("--maintenance names one that is resumed: it goes with no hosts")
    else:
        body = {
            "hosts": selection.names(conductor),
            "reserve": not no_reserve,
            "most_hosts": most_hosts,
            "keep_going": keep_going,
        }
        found = conductor.ask("POST", PATH, body)
    _tell(conductor, found, wait, as_json)


@click.command(epilog="Example: roost maintenance pause")
@_named
@action_as_json
@with_conductor
def pause(conductor: ServiceClient, uuid: str | None, as_json: bool) -> None:
    """Pause a maintenance: no further move and no call of the hook begins.

    Those under way go on, and a host whose work is done is given back. `roost maintenance start` without
    hosts resumes it.
    """
    _tell(conductor, _word(conductor, _one(conductor, uuid), "pause"), False, as_json)


@click.command(epilog="Example: roost maintenance cancel --wait")
@_named
@_wait
@no_progress
@action_as_json
@with_conductor
def cancel(conductor: ServiceClient, uuid: str | None, wait: bool, as_json: bool) -> None:
    """Cancel a maintenance: no further wave begins, and the hosts of the last one are given back."""
    _tell(conductor, _word(conductor, _one(conductor, uuid), "cancel"), wait, as_json)


@click.command(epilog="Example: roost maintenance done host-0001")
@click.argument("host")
@action_as_json
@with_conductor
def done(conductor: ServiceClient, host: str, as_json: bool) -> None:
    """Say that the work on a host of a maintenance is done, so that it is given back.

    Where there is a hook, its call for the host is stopped.
    """
    found = conductor.ask("GET", PATH, query={"host": host})["maintenances"]
    if not found:
        raise click.UsageError(f"host {host} is in no maintenance that is under way")
    path = f"{PATH}/{found[0]['uuid']}/hosts/{part_of_path(host)}/done"
    shown = conductor.ask("POST", path)
    if as_json:
        print_json(shown)
    else:
        left = "1 host is left" if shown["left"] == 1 else f"{shown['left']} hosts are left"
        note(f"host {host} is given back; {left}")


@click.command(epilog="Example: roost maintenance status --wait")
@_named
@_wait
@no_progress
@as_json
@with_conductor
def status(conductor: ServiceClient, uuid: str | None, wait: bool, as_json: bool) -> None:
    """Show a maintenance: its waves, the hosts that are in work or left out, and how many are left.

    Without a uuid it is the one that is under way, or else the last one. The exit status is 1 if hosts were
    left out.
    """
    if uuid is None:
        found = _under_way(conductor) or conductor.ask("GET", PATH, query={"limit": 1})["maintenances"]
        if not found:
            raise click.UsageError("there is no maintenance")
        uuid = found[0]["uuid"]
        for other in found[1:]:
            note(f"maintenance {other['uuid']} is {other['state']} too: {other['left']} hosts are left")
    found = conductor.ask("GET", f"{PATH}/{part_of_path(uuid)}")
    _tell(conductor, found, wait, as_json)
    if found["hosts"].get("left-out"):
        raise SystemExit(1)


MAINTENANCE_RUNS: Final = (start, pause, status, done, cancel)


def _under_way(conductor: ServiceClient) -> list[dict[str, Any]]:
    """Return the maintenances that have not ended, the newest first."""
    found: list[dict[str, Any]] = conductor.ask("GET", PATH, query={"under_way": True})["maintenances"]
    return found


def _one(conductor: ServiceClient, uuid: str | None) -> str:
    """Return the uuid of the maintenance that is meant. Raises `click.UsageError`."""
    if uuid is not None:
        return uuid
    found = _under_way(conductor)
    if not found:
        raise click.UsageError("no maintenance is under way")
    if len(found) > 1:
        uuids = ", ".join(each["uuid"] for each in found)
        raise click.UsageError(f"several maintenances are under way: name one of {uuids}")
    only: str = found[0]["uuid"]
    return only


def _word(conductor: ServiceClient, uuid: str, verb: str) -> dict[str, Any]:
    found: dict[str, Any] = conductor.ask("POST", f"{PATH}/{part_of_path(uuid)}/{verb}")
    return found


def _tell(conductor: ServiceClient, found: dict[str, Any], wait: bool, as_json: bool) -> None:
    """Print a maintenance with its hosts; with ``wait`` once it has ended or is paused.

    Then the exit status is 1 if it is paused, or has left hosts out though nobody has cancelled it.
    """
    path = f"{PATH}/{found['uuid']}"
    if wait:
        found = _waited(conductor, path, found)
    hosts = [
        each
        for page in conductor.pages(f"{path}/hosts", "hosts", {"state": _SHOWN})
        for each in page["hosts"]
    ]
    if as_json:
        print_json({"maintenance": found, "hosts": hosts})
    else:
        _print(found, hosts)
    if (
        wait
        and found["state"] != "cancelled"
        and (found["state"] == "paused" or found["hosts"].get("left-out"))
    ):
        raise SystemExit(1)


def _waited(conductor: ServiceClient, path: str, found: dict[str, Any]) -> dict[str, Any]:
    with progress("maintaining hosts") as meter:
        while True:
            total = sum(found["hosts"].values())
            meter.count(total - found["left"], total)
            meter.detail = f"wave {found['wave']}, {found['hosts'].get('in-work', 0)} in work"
            if found["state"] not in ("running", "cancelling"):
                return found
            time.sleep(WAIT_SECONDS)
            found = conductor.ask("GET", path)


def _print(found: Mapping[str, Any], hosts: Sequence[Mapping[str, Any]]) -> None:
    numbers = ", ".join(f"{number} {state}" for state, number in found["hosts"].items())
    note(f"maintenance {found['uuid']}: {found['state']}, wave {found['wave']}; {numbers}")
    if found["reason"]:
        note(found["reason"])
    rows = [(each["host"], each["cell"], each["state"], str(each["wave"]), _detail(each)) for each in hosts]
    if rows:
        print_table(("host", "cell", "state", "wave", "detail"), rows)
    for each in hosts:
        hook = each["hook"]
        if hook is not None and hook["failure"] is not None and hook["output"]:
            note(f"the last lines of the hook for {each['host']}:\n{hook['output']}")


def _detail(host: Mapping[str, Any]) -> str:
    """Return what is to be said of a host beside its state."""
    if host["reason"]:
        return str(host["reason"])
    if host["instances"] is not None:
        return "1 instance left" if host["instances"] == 1 else f"{host['instances']} instances left"
    if host["state"] != "in-work":
        return ""
    if host["hook"] is not None and host["failures"]:
        return f"call {host['calls']} of the hook; before, {host['hook']['failure']}"
    return f"call {host['calls']} of the hook" if host["calls"] else "waits for the hook, or for `done`"

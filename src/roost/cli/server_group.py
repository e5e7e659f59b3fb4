"""``roost server-group``: groups of instances that are to be together or apart."""

from typing import get_args

import click

from roost.cli.command_group import CommandGroup
from roost.cli.numbers import WholeNumber
from roost.cli.options import watched, watching
from roost.cli.output import action_as_json, as_json, print_facts, print_further, print_json, print_table
from roost.cli.service_client import ServiceClient, part_of_path, with_conductor
from roost.model.allocation import GroupPolicy

PATH = "/v1/server-groups"


@click.group("server-group", cls=CommandGroup)
def server_group() -> None:
    """Make, list, show and delete server groups: instances that are to be together, or apart.

    `roost instance create --hint group=UUID` asks for members of one.

    Exit status: 0 done, 1 refused, 2 could not run.
    """


@server_group.command(epilog="Example: roost server-group create web --policy anti-affinity --max-per-host 2")
@click.argument("name")
@click.option("--policy", type=click.Choice(get_args(GroupPolicy)), required=True, help="Nova's policy.")
@click.option(
    "--max-per-host", type=WholeNumber(1), help="Members that a host may have, with anti-affinity; else 1."
)
@action_as_json
@with_conductor
def create(conductor: ServiceClient, name: str, policy: str, max_per_host: int | None, as_json: bool) -> None:
    """Make a server group in the project of the token. Prints its uuid. It cannot be changed."""
    rules = {} if max_per_host is None else {"max_server_per_host": max_per_host}
    made = conductor.ask("POST", PATH, {"name": name, "policy": policy, "rules": rules})
    if as_json:
        print_json(made)
    else:
        click.echo(made["uuid"])


@server_group.command("list", epilog="Example: roost server-group list --all-projects")
@click.option("--project", "project_id", help="Only those of this project.")
@click.option("--all-projects", is_flag=True, help="Those of all projects.")
@click.option("--limit", type=WholeNumber(1), metavar="N", help="Show at most N.")
@watching
@as_json
@with_conductor
def list_server_groups(
    conductor: ServiceClient,
    project_id: str | None,
    all_projects: bool,
    limit: int | None,
    watch: float | None,
    as_json: bool,
) -> None:
    """List server groups, without their members."""
    query = {"project_id": project_id, "all_projects": all_projects or None, "limit": limit}

    def show() -> None:
        found = [
            each for page in conductor.pages(PATH, "server_groups", query) for each in page["server_groups"]
        ]
        if as_json:
            print_json({"server_groups": found})
            return
        rows = [
            (
                each["uuid"],
                each["name"],
                each["policy"],
                str(each["rules"].get("max_server_per_host") or ""),
                each["project_id"],
            )
            for each in found
        ]
        print_table(("uuid", "name", "policy", "most on a host", "project"), rows)

    watched(show, watch)


@server_group.command("show", epilog="Example: roost server-group show 4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11")
@click.argument("uuid")
@as_json
@with_conductor
def show_server_group(conductor: ServiceClient, uuid: str, as_json: bool) -> None:
    """Show a server group with its members: the instances that have a claim as members of it."""
    found = conductor.ask("GET", f"{PATH}/{part_of_path(uuid)}")
    if as_json:
        print_json(found)
        return
    members = found.pop("members")
    print_facts(found)
    print_further(("member",), [(each,) for each in members])


@server_group.command(epilog="Example: roost server-group delete 4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11")
@click.argument("uuids", nargs=-1, required=True, metavar="UUID...")
@action_as_json
@with_conductor
def delete(conductor: ServiceClient, uuids: tuple[str, ...], as_json: bool) -> None:
    """Delete server groups. Their members stay where they are."""
    for uuid in uuids:
        conductor.ask("DELETE", f"{PATH}/{part_of_path(uuid)}")
    if as_json:
        print_json({"deleted": uuids})

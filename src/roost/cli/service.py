"""``roost service``: which processes and agents run."""

import click

from roost.cli.command_group import CommandGroup
from roost.cli.host import warn_of_cells
from roost.cli.options import watched, watching
from roost.cli.output import as_json, print_json, print_table, utc
from roost.cli.service_client import ServiceClient, with_conductor


@click.group(cls=CommandGroup)
def service() -> None:
    """Show conductors, cell conductors and agents.

    Exit status: 0 done, 1 refused, 2 could not run.
    """


@service.command("list", epilog="Example: roost service list --kind cell-conductor")
@click.option(
    "--kind", help="Only these: conductor, cell-conductor, host and so on; agents only with `host`."
)
@click.option("--cell", help="Only those of this cell.")
@watching
@as_json
@with_conductor
def list_services(
    conductor: ServiceClient, kind: str | None, cell: str | None, watch: float | None, as_json: bool
) -> None:
    """List services: which are up, as the conductor sees it."""

    def show() -> None:
        answer = conductor.ask("GET", "/v1/services", query={"kind": kind, "cell": cell})
        if as_json:
            print_json(answer)
            return
        rows = [
            (
                each["name"],
                each["cell"] or "",
                each["state"],
                str(each["service_version"]),
                utc(each["since"]),
            )
            for each in answer["services"]
        ]
        print_table(("service", "cell", "state", "version", "since (UTC)"), rows)
        for each in answer.get("features", ()):
            if held := each["held_back_by"]:
                needed = f"once all have version {each['since']}; older ones: {held}"
                click.echo(f"roost: {each['name']} are off: {each['what']} {needed}", err=True)
        warn_of_cells(set(answer["cells_down"]))

    watched(show, watch)

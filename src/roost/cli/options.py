"""Options that several commands share."""

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")

no_authentication = click.option(
    "--insecure-no-authentication",
    "insecure",
    is_flag=True,
    help="Serve on an address that other machines reach although every token is believed.",
)

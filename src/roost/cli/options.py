"""Options that several commands share."""

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")

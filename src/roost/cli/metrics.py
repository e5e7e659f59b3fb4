"""``roost metrics``: the list of all metrics."""

import click

from roost.cli.output import document_as_json, print_json
from roost.process.metrics.catalogue import CATALOGUE
from roost.process.metrics.page import markdown, section_of


@click.command(epilog="Example: roost metrics --json")
@document_as_json
def metrics(as_json: bool) -> None:
    """List all metrics that a service with --metrics-port counts, in Markdown."""
    if not as_json:
        click.echo(markdown(), nl=False)
        return
    print_json(
        [
            {
                "name": metric.name,
                "kind": metric.kind,
                "section": section_of(metric),
                "help": metric.help,
                "advice": metric.advice,
                "labels": {label.name: label.text for label in metric.described_labels},
            }
            for metric in CATALOGUE
        ]
    )

"""``roost metrics``: the list of all metrics, which docs/metrics.md has between its marks."""

from collections.abc import Iterator
from typing import Final

import click

from roost.cli.output import document_as_json, print_json
from roost.process.metrics.catalogue import CATALOGUE, AnyMetric
from roost.process.metrics.instruments import Gauge

SECTIONS: Final = {
    "roost_http_": "Requests",
    "roost_health_": "Readiness",
    "roost_allocation_": "Candidates",
    "roost_ledger_": "Ledger",
    "roost_scheduler_": "Scheduler",
    "roost_conductor_": "Conductors",
    "roost_compute_": "Agents",
    "roost_records_": "Records",
    "roost_nova_": "Bridge to Nova",
    "roost_": "Processes",
}
"""The section of each metric, by prefix of its name. The first prefix that matches counts."""

_ACROSS: Final = {"sum": "the sum", "max": "the largest", "min": "the smallest"}


def markdown() -> str:
    """Return all metrics by section, in Markdown."""
    return "\n".join(_lines())


def section_of(metric: AnyMetric) -> str:
    """Return the title of a metric's section."""
    return next(title for prefix, title in SECTIONS.items() if metric.name.startswith(prefix))


def _lines() -> Iterator[str]:
    for title in SECTIONS.values():
        yield f"## {title}"
        yield ""
        for metric in CATALOGUE:
            if section_of(metric) == title:
                yield from _entry(metric)


def _entry(metric: AnyMetric) -> Iterator[str]:
    kind = metric.kind.capitalize()
    if isinstance(metric, Gauge) and "process" not in metric.label_names:
        kind += f", {_ACROSS[metric.across]} of all processes"
    yield f"### `{metric.name}`"
    yield ""
    yield f"{kind}. {metric.help}"
    yield ""
    for label in metric.described_labels:
        yield f"- `{label.name}`: {label.text}"
    if metric.described_labels:
        yield ""
    yield f"*{metric.advice}*"
    yield ""


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

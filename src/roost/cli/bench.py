"""``roost bench``: the project's figures, measured and printed."""

import json

import click
import msgspec
from rich.console import Console
from rich.table import Table

from roost.bench import decide as deciding
from roost.bench.machine import describe
from roost.cli.options import as_json


@click.group(epilog="Example: roost bench decide --hosts 1000 --hosts 10000")
def bench() -> None:
    """Measure. The replays measure themselves: see 'roost replay'."""


@bench.command(epilog="Example: roost bench decide --hosts 10000 --decisions 2000")
@click.option(
    "--hosts",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1_000, 10_000),
    show_default=True,
    help="Number of hosts; may be repeated.",
)
@click.option("--decisions", type=click.IntRange(min=1), default=2_000, show_default=True, help="How many.")
@click.option("--alternates", type=click.IntRange(min=0), default=2, show_default=True, help="For each.")
@click.option("--seed", type=int, default=42, show_default=True, help="Of fleet and requests.")
@as_json
def decide(hosts: tuple[int, ...], decisions: int, alternates: int, seed: int, as_json: bool) -> None:
    """Time single decisions without the store: filter, weigh, pick, claim prepared, alternates."""
    results = [deciding.measure(number, decisions, alternates, seed) for number in hosts]
    machine = describe()
    if as_json:
        click.echo(
            json.dumps(
                {"machine": machine, "decide": [msgspec.to_builtins(each) for each in results]}, indent=2
            )
        )
        return
    table = Table(title=f"decide, {alternates} alternates, {decisions:,} decisions", title_justify="left")
    for column in ("hosts", "p50 ms", "p99 ms", "decisions/s"):
        table.add_column(column, justify="right")
    for each in results:
        table.add_row(
            f"{each.hosts:,}",
            f"{each.p50_ms:.3f}",
            f"{each.p99_ms:.3f}",
            f"{each.decisions_per_second:,.0f}",
        )
    console = Console()
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()))

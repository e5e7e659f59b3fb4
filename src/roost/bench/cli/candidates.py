"""``roost bench candidates``."""

from pathlib import Path
from typing import Any

import click

from roost.bench import candidates as benchmark
from roost.bench.cli.options import hosts, setting, setting_options, show_report
from roost.bench.fleets import FleetPlan, flat, nested, wide
from roost.bench.store import open_store
from roost.cli.numbers import WholeNumber


@click.command(epilog="Example: roost bench candidates --fleet flat --hosts 10000 --limit 10 --peer")
@hosts
@click.option(
    "--fleet",
    "fleets",
    type=click.Choice(["flat", "nested", "wide"]),
    multiple=True,
    default=("flat", "nested", "wide"),
    show_default=True,
    help="Kinds of fleet; wide ones have few hosts, whatever --hosts says.",
)
@click.option(
    "--limit",
    "limits",
    type=WholeNumber(min=0),
    multiple=True,
    default=(1_000, 10),
    show_default=True,
    help="Candidates in an answer; 0: no limit, on flat fleets of up to 10,000 hosts. May be repeated.",
)
@click.option("--clients", type=WholeNumber(1), default=1, show_default=True, help="Connections.")
@setting_options
def candidates(
    hosts: tuple[int, ...],
    fleets: tuple[str, ...],
    limits: tuple[int, ...],
    clients: int,
    folder: Path,
    database: str,
    output: Path | None,
    as_json: bool,
    **rest: Any,
) -> None:
    """Time GET /allocation_candidates as Nova sends it, with two required traits and a forbidden one."""
    chosen = setting(folder, **rest)
    with open_store(folder, database) as store:
        report = benchmark.measure(chosen, store, _plans(fleets, hosts), limits, clients)
    show_report(report, as_json, output)


def _plans(fleets: tuple[str, ...], hosts: tuple[int, ...]) -> list[FleetPlan]:
    plans = []
    for fleet in fleets:
        if fleet == "wide":
            plans += [wide(10), wide(2, devices=32)]
        else:
            plans += [{"flat": flat, "nested": nested}[fleet](number) for number in hosts]
    return plans

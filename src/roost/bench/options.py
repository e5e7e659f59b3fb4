"""Options that several commands of ``roost bench`` share, and the run of a benchmark with its output."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from roost.bench.measurement import ComparedSetting
from roost.bench.report import BenchReport, show_report
from roost.cli.failures import FOUND_WRONG
from roost.cli.numbers import Number, WholeNumber
from roost.cli.output import document_as_json

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A decorator that adds an option to a command."""


def bench_directory() -> Path:
    """Return the default of --dir, the folder of databases and of the peer.

    For root it is outside root's home, to which PostgreSQL's account has no access.
    """
    if os.geteuid() == 0:
        return Path("/var/cache/roost-bench")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost" / "bench"


def count_option(name: str, default: int, text: str, least: int = 1) -> Option:
    """Return the option of a whole number."""
    return click.option(name, type=WholeNumber(min=least), default=default, show_default=True, help=text)


def counts_option(name: str, default: tuple[int, ...], text: str, least: int = 1) -> Option:
    """Return the option of a whole number that may be repeated."""
    return click.option(
        name,
        type=WholeNumber(min=least),
        multiple=True,
        default=default,
        show_default=True,
        help=f"{text}; may be repeated.",
    )


directory = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=bench_directory,
    help=f"Folder of the databases and of the peer.  [default: {bench_directory()}]",
)
hosts = counts_option("--hosts", (1_000, 10_000), "Hosts of the fleet")
_DATABASE = click.option(
    "--database",
    default="sqlite",
    show_default=True,
    metavar="sqlite|postgresql|URL",
    help="postgresql: a private server with all syncs on; URL: a PostgreSQL server that gets databases.",
)
_OUTPUT = click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the report as JSON, too."
)
workers = count_option("--workers", 1, "Worker processes of Roost.")
_PEER = (
    click.option("--peer", is_flag=True, help="Measure OpenStack Placement too, in turns."),
    count_option("--peer-processes", 2, "Worker processes of uwsgi."),
    count_option(
        "--peer-providers", 12_000, "Providers of the largest fleet on which the peer is measured.", least=0
    ),
    click.option(
        "--timeout",
        type=Number(min=0, min_open=True),
        default=20.0,
        show_default=True,
        help="Seconds after which an answer is abandoned; its time counts as a lower bound.",
    ),
)


def reported(
    *, database: bool = True, rounds: int | None = None, seconds: float | None = None, peer: bool = False
) -> Option:
    """Return a decorator that makes a command of a function from a `ComparedSetting` to a `BenchReport`.

    The command gets the options of the setting and prints the report; it exits with 1 if a check failed.
    ``rounds`` and ``seconds``: defaults of --rounds and --duration, None for a command without them.
    ``peer``: the command measures OpenStack Placement, too.
    """
    options: list[Option] = [directory]
    if database:
        options.append(_DATABASE)
    if peer:
        options += (workers, *_PEER)
    if rounds is not None:
        options.append(count_option("--rounds", rounds, "Rounds of each service."))
    if seconds is not None:
        duration = Number(min=0, min_open=True)
        options.append(
            click.option(
                "--duration",
                "seconds",
                type=duration,
                default=seconds,
                show_default=True,
                help="Seconds of each round.",
            )
        )
    options += (_OUTPUT, document_as_json)

    def decorate(measure: Callable[..., BenchReport]) -> Callable[..., None]:
        @wraps(measure)
        def run(output: Path | None, as_json: bool, **given: Any) -> None:
            settings = {name: given.pop(name) for name in ComparedSetting.__struct_fields__ if name in given}
            setting = ComparedSetting(**settings)
            report = measure(setting, **given)
            if output is not None:
                output.write_text(report.as_json() + "\n")
            if as_json:
                click.echo(report.as_json())
            else:
                show_report(report)
            if report.wrong:
                sys.exit(FOUND_WRONG)

        command: Callable[..., None] = run
        for option in reversed(options):
            command = option(command)
        return command

    return decorate

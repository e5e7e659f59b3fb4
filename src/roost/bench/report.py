"""The report of a benchmark: a table with its formats, printed, kept as JSON, and put into a page.

A benchmark declares a `BenchTable` and its `Goal`s once; it returns rows, and everything that is shown is
made here.
"""

import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import roost
from roost.bench.errors import BenchError
from roost.bench.goals import Goal

EMPTY_CELL: Final = "–"
WIDTH: Final = 200
"""Columns of text in the table if standard output is not a terminal."""

_BEGIN: Final = "<!-- bench {name} -->"
_END: Final = "<!-- /bench -->"
_NAMES: Final = re.compile(r"<!-- bench ([\w-]+) -->")


class Column(msgspec.Struct, frozen=True):
    """A column of a report.

    ``field`` is the path of its value in a row, such as ``roost.p50_ms``; ``form`` a format specification.
    ``bound`` is the path of the flag that makes the value a lower bound.
    """

    title: str
    field: str
    form: str = ""
    bound: str = ""


class BenchReport(msgspec.Struct, frozen=True):
    """The result of a benchmark.

    ``question``: the name of the benchmark. ``rows``: builtin values only. ``notes``: printed below the
    table. ``wrong``: failed checks, with which the exit status of the command is 1.
    """

    question: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Any], ...]
    settings: dict[str, Any]
    machine: dict[str, str]
    notes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    def visible_columns(self) -> list[Column]:
        """Return the columns that have a value in at least one row."""
        return [
            each for each in self.columns if any(_value(row, each.field) is not None for row in self.rows)
        ]

    def cells(self) -> list[list[str]]:
        """Return the texts of the visible columns of each row."""
        columns = self.visible_columns()
        return [[format_cell(row, column) for column in columns] for row in self.rows]

    def as_json(self) -> str:
        """Return the report as indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self)).decode()


class BenchTable(msgspec.Struct, frozen=True):
    """The declaration of a benchmark's table: its columns are the fields of its rows.

    ``goals``: those of its rows that a report tells of.
    """

    question: str
    title: str
    columns: tuple[Column, ...]
    goals: tuple[Goal, ...] = ()

    def report(
        self,
        rows: Sequence[Mapping[str, Any]],
        settings: Mapping[str, Any],
        notes: Iterable[str] = (),
        wrong: Iterable[str] = (),
    ) -> BenchReport:
        """Return the report of rows on this machine. A field that a row leaves out is None.

        Raises:
            ValueError: A row has a field without a column.
        """
        fields = dict.fromkeys(column.field.partition(".")[0] for column in self.columns)
        for row in rows:
            if strange := row.keys() - fields.keys():
                raise ValueError(f"{self.question}: no column shows {', '.join(sorted(strange))}")
        plain = tuple(msgspec.to_builtins({**fields, **row}) for row in rows)
        told = [
            goal.verdict(value)
            for row in plain
            for goal in self.goals
            if goal.is_of({**settings, **row}) and (value := _value(row, goal.field)) is not None
        ]
        return BenchReport(
            question=self.question,
            title=self.title,
            columns=self.columns,
            rows=plain,
            settings=dict(settings),
            machine=describe_machine(),
            notes=(*notes, *told),
            wrong=tuple(wrong),
        )


def format_cell(row: dict[str, Any], column: Column) -> str:
    """Return the text of a cell. Lower bounds begin with ≥; `EMPTY_CELL` stands for a missing value."""
    value = _value(row, column.field)
    if value is None:
        return EMPTY_CELL
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count:,}" for name, count in value.items()) or EMPTY_CELL
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    shown = format(value, column.form or ",")
    return f"≥ {shown}" if column.bound and _value(row, column.bound) else shown


def _value(row: dict[str, Any], field: str) -> Any:
    value: Any = row
    for name in field.split("."):
        value = None if value is None else value.get(name)
    return None if value == {} else value


def show_report(report: BenchReport) -> None:
    """Print a report as a table, with settings, notes, failed checks and the machine."""
    table = Table(
        title=f"{report.title}: {_named(report.settings)}", title_justify="left", box=box.SIMPLE_HEAD
    )
    for column in report.visible_columns():
        table.add_column(column.title, justify="right", overflow="fold")
    for cells in report.cells():
        table.add_row(*cells)
    # Files and pipes do not wrap lines, so the table need not fit a terminal.
    width = None if sys.stdout.isatty() else WIDTH
    console = Console(markup=False, highlight=False, width=width)
    console.print(table)
    for line in (*report.notes, *(f"WRONG: {each}" for each in report.wrong)):
        console.print(line)
    console.print(_named(report.machine))


def _named(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def read_report(path: Path) -> BenchReport:
    """Read a report from its file.

    Raises:
        BenchError: The file cannot be read or is not a report.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=BenchReport)
    except (OSError, msgspec.DecodeError) as error:
        raise BenchError(f"{path} is not the result of a benchmark: {error}") from error


def markdown_table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    head = list(titles)
    lines = [head, *map(list, rows)]
    shown = ["| " + " | ".join(cells) + " |" for cells in lines]
    return [shown[0], "|" + "---|" * len(head), *shown[1:]]


def render_report(report: BenchReport) -> str:
    """Return a report as a Markdown table, with settings, notes and failed checks below it."""
    titles = [column.title for column in report.visible_columns()]
    lines = [*markdown_table(titles, report.cells()), "", f"*{_named(report.settings)}*"]
    for line in (*report.notes, *(f"**Wrong: {each}**" for each in report.wrong)):
        lines += ["", line]
    return "\n".join(lines)


def report_names(page: str) -> list[str]:
    """Return the names of the reports that a page has comments for, in order."""
    return _NAMES.findall(page)


def replace_report(page: str, name: str, block: str) -> str:
    """Return the page with ``block`` between the comments of the report ``name``.

    Raises:
        BenchError: The page has no such comments.
    """
    begin = _BEGIN.format(name=name)
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(_END)
    if not found or not ended:
        raise BenchError(f"the page has no room for {name}: it needs a line {begin} and, after it, {_END}")
    return f"{before}{begin}\n{block}\n{_END}{after}"


def describe_machine() -> dict[str, str]:
    """Return processor, memory, and versions of this machine, by name."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "roost": roost.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

"""The report of a benchmark: a table with its formats, which is printed and kept as JSON."""

from collections.abc import Iterable
from typing import Any

import msgspec

from roost.bench.machine import describe_machine

EMPTY_CELL = "–"


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


def report(
    question: str,
    title: str,
    columns: Iterable[Column],
    rows: Iterable[msgspec.Struct],
    settings: dict[str, Any],
    notes: Iterable[str] = (),
    wrong: Iterable[str] = (),
) -> BenchReport:
    """Return the report of a benchmark's rows on this machine."""
    plain = tuple(msgspec.to_builtins(row) for row in rows)
    return BenchReport(
        question, title, tuple(columns), plain, settings, describe_machine(), tuple(notes), tuple(wrong)
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

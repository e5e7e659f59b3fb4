"""What a benchmark found: a table that knows how it is printed, and that JSON keeps whole."""

from collections.abc import Iterable
from typing import Any

import msgspec

from roost.bench.machine import describe

NOTHING = "–"


class Column(msgspec.Struct, frozen=True):
    """``field``: of a row, dotted for what lies within. ``form``: a format specification.

    ``bound``: the field that says whether the value is a lower bound.
    """

    title: str
    field: str
    form: str = ""
    bound: str = ""


class Report(msgspec.Struct, frozen=True):
    """The answer to one question.

    ``rows`` are plain values. ``notes`` are lines to be read with the table; ``wrong`` says what must not
    be, and makes the command's exit status 1.
    """

    question: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Any], ...]
    settings: dict[str, Any]
    machine: dict[str, str]
    notes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    def shown(self) -> list[Column]:
        """The columns in which some row has something."""
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
) -> Report:
    """A report on this machine, from a question's own rows."""
    plain = tuple(msgspec.to_builtins(row) for row in rows)
    return Report(question, title, tuple(columns), plain, settings, describe(), tuple(notes), tuple(wrong))


def cell(row: dict[str, Any], column: Column) -> str:
    """What stands in one place of the table. Lower bounds begin with ≥, what is unknown is a dash."""
    value = _value(row, column.field)
    if value is None:
        return NOTHING
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count:,}" for name, count in value.items()) or NOTHING
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    shown = format(value, column.form or ",")
    return f"≥ {shown}" if column.bound and _value(row, column.bound) else shown


def _value(row: dict[str, Any], field: str) -> Any:
    value: Any = row
    for name in field.split("."):
        value = None if value is None else value.get(name)
    return None if value == {} else value

"""The forms of printed results: tables, JSON, and values for other programs."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Literal, NamedTuple, TypeVar

import click
import msgspec
from rich.console import Console

from roost.cli.tables import one_line, screen_width, table_lines

_ANY_WIDTH = 100_000
"""Most characters of a line that is not written to a terminal."""

_CHOSEN = "roost.cli.output"
_TIMES = frozenset(("since", "last_seen", "until"))

F = TypeVar("F", bound=Callable[..., Any])


class Output(NamedTuple):
    """The form of a printed result, and the selected part of it.

    ``columns``: the selected columns, in this order; empty: all. ``quiet``: only names, one a line.
    """

    form: Literal["table", "json", "value"] = "table"
    columns: tuple[str, ...] = ()
    quiet: bool = False

    @property
    def is_for_people(self) -> bool:
        """Return whether sentences and further tables are printed beside the requested one."""
        return self == Output()


def as_json(command: F) -> F:
    """Add the options of output to a command, which gets ``as_json``: whether the output is JSON."""
    return _with_output(command, columns=True)


def action_as_json(command: F) -> F:
    """As `as_json`, for a command that changes something: without the option of columns."""
    return _with_output(command, columns=False)


def document_as_json(command: F) -> F:
    """As `as_json`, for a command whose text is more than one table."""

    @wraps(command)
    def run(*arguments: Any, json: bool, form: str | None, **named: Any) -> Any:
        chosen = _form(json, form)
        _choose(chosen)
        return command(*arguments, as_json=chosen.form == "json", **named)

    choice = click.Choice(("table", "json"))
    decorated: Any = _json(click.option("--format", "form", type=choice, help=_FORM)(run))
    return decorated  # type: ignore[no-any-return]


_FORM = "As what the result is printed.  [default: table]"
_json = click.option("--json", is_flag=True, help="Print JSON: --format json.")


def _with_output(command: F, *, columns: bool) -> F:
    @wraps(command)
    def run(
        *arguments: Any, json: bool, form: str | None, quiet: bool, columns: str | None = None, **named: Any
    ) -> Any:
        chosen = _form(json, form)._replace(
            columns=tuple(each.strip() for each in (columns or "").split(",") if each.strip()), quiet=quiet
        )
        if quiet and (chosen.form == "json" or chosen.columns):
            raise click.UsageError("--quiet prints names alone: it excludes --columns and JSON")
        _choose(chosen)
        return command(*arguments, as_json=chosen.form == "json", **named)

    decorated: Any = run
    options = [
        _json,
        click.option("--format", "form", type=click.Choice(("table", "json", "value")), help=_FORM),
        click.option("--quiet", "-q", is_flag=True, help="Print names or uuids alone, one a line."),
    ]
    if columns:
        options.append(
            click.option(
                "--columns", metavar="NAME,...", help="Only these columns, or fields of JSON, in this order."
            )
        )
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _form(json: bool, form: str | None) -> Output:
    if json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} exclude each other")
    return Output("json" if json else form or "table")  # type: ignore[arg-type]


def _choose(output: Output) -> None:
    click.get_current_context().meta[_CHOSEN] = output


def output() -> Output:
    """Return the output that the command line selects."""
    context = click.get_current_context(silent=True)
    return Output() if context is None else context.meta.get(_CHOSEN, Output())


def print_json(document: object) -> None:
    """Print a document as indented JSON, with the selected columns only."""
    if columns := output().columns:
        document = _of_columns(msgspec.to_builtins(document), columns)
    click.echo(msgspec.json.format(msgspec.json.encode(document)))


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0, *, named_by: str | None = None
) -> None:
    """Print rows under a header, or their selected columns.

    On a terminal long sentences are folded, elsewhere each row is one line. ``numbers``: so many last columns
    are aligned to the right. ``named_by``: the column of names, the only one that --quiet prints; by default
    the first one.
    """
    chosen = output()
    if chosen.quiet:
        place = 0 if named_by is None else header.index(named_by)
        _print_values((row[place],) for row in rows)
        return
    if chosen.columns:
        places = _places(chosen.columns, header)
        right = range(len(header) - numbers, len(header))
        numbers = 0
        for place in reversed(places):
            if place not in right:
                break
            numbers += 1
        header, rows = [header[place] for place in places], [[row[place] for place in places] for row in rows]
    if chosen.form == "value":
        _print_values(rows)
        return
    for line in table_lines(header, rows, numbers, screen_width()):
        click.echo(line)


def print_facts(found: Mapping[str, Any]) -> None:
    """Print the fields of one object: as a table without empty ones, or the selected values."""
    chosen = output()
    texts = {name: text_of(name, value) for name, value in found.items()}
    if chosen.columns:
        names = [*texts]
        texts = {names[place]: texts[names[place]] for place in _places(chosen.columns, names)}
    if chosen.quiet:
        texts = dict([*texts.items()][:1])
    if chosen.quiet or chosen.form == "value":
        _print_values((text,) for text in texts.values())
        return
    rows = [
        (f"{name} (UTC)" if _is_time(name, found[name]) else name, text)
        for name, text in texts.items()
        if text
    ]
    for line in table_lines(("field", "value"), rows, width=screen_width()):
        click.echo(line)


def print_further(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0) -> None:
    """Print a further table beside the requested one, if it has rows and the output is for people."""
    if rows and output().is_for_people:
        click.echo()
        print_table(header, rows, numbers)


def console() -> Console:
    """Return a console for results that are more than tables: as wide as the screen, or unlimited."""
    return Console(markup=False, highlight=False, width=screen_width() or _ANY_WIDTH)


def print_warnings(answer: Mapping[str, Any]) -> None:
    """Print the warnings of a response to standard error: parts of the request without effect."""
    for each in answer.get("warnings", ()):
        click.echo(f"warning: {each['text']}", err=True)


def note(text: str) -> None:
    """Print a sentence beside a result, if the output is for people."""
    if output().is_for_people:
        click.echo(text)


def text_of(name: str, value: object) -> str:
    """Return the value of a field as text; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_time(name, value):
        return utc(float(value))  # type: ignore[arg-type]
    if isinstance(value, dict):
        if value and all(isinstance(each, dict) for each in value.values()):
            return "; ".join(f"{amounts_text(each)} of {key}" for key, each in value.items())
        return ", ".join(f"{key}={text_of(key, each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(text_of("", each) for each in value)
    return str(value)


def amounts_text(amounts: Mapping[str, object]) -> str:
    """Return amounts of resource classes as text: ``4 VCPU, 8192 MEMORY_MB``."""
    return ", ".join(f"{amount} {name}" for name, amount in sorted(amounts.items()))


def utc(seconds: float) -> str:
    """Return a time as tables show it. ``seconds``: since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _is_time(name: str, value: object) -> bool:
    timely = name.endswith("_at") or name in _TIMES
    return timely and isinstance(value, int | float) and not isinstance(value, bool)


def _print_values(rows: Iterable[Sequence[str]]) -> None:
    for row in rows:
        click.echo("\t".join(map(one_line, row)))


def _places(columns: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the positions of columns among names. Raises `UsageError` for an unknown column."""
    known = {_plain(name): place for place, name in enumerate(names)}
    for column in columns:
        if _plain(column) not in known:
            raise click.UsageError(
                f"no column {column!r}: there are {', '.join(_plain(each) for each in names)}"
            )
    return [known[_plain(column)] for column in columns]


def _plain(name: str) -> str:
    """Return the name of a column on the command line: ``since (UTC)`` is ``since``."""
    return re.sub(r"\s*\(.*\)$", "", name).lower().replace(" ", "_").replace("-", "_")


def _of_columns(document: Any, columns: Sequence[str]) -> Any:
    """Return a document with the selected fields only: those of the entries of a list, or its own."""
    if isinstance(document, list):
        return [_of_columns(each, columns) if isinstance(each, dict) else each for each in document]
    first, entries = next(iter(document.items()), ("", None))
    if isinstance(entries, list):
        return {**document, first: _of_columns(entries, columns)}
    names = [*document]
    return {names[place]: document[names[place]] for place in _places(columns, names)}

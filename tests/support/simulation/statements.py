"""A connection that executes statements of SQLAlchemy on SQLite with less work than SQLAlchemy's own.

A work of a conductor has a few statements of some microseconds each. Nearly all of its time would be that of
SQLAlchemy's contexts, events and results. A statement is compiled here as there, once, and what it gives is
read the same way; the rest is left out.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, MultipleResultsFound, NoResultFound
from sqlalchemy.sql.compiler import SQLCompiler

Executed = Callable[[str, int], None]


class Plan(NamedTuple):
    """How a statement is executed. ``names``: those of its parameters, in their order. ``expands``: one of
    them is a list. ``row`` makes a row of what SQLite gives; None if there are no rows."""

    compiled: SQLCompiler
    text: str
    names: tuple[str, ...]
    processors: Mapping[str, Callable[[Any], Any]]
    expands: bool
    row: Callable[[Any], Any] | None


class PlainConnection:
    """What works use of a connection. Anything else is done by SQLAlchemy's ``real`` one.

    ``executed`` is told the text of each statement, and how many rows it has changed.
    """

    def __init__(self, real: sa.Connection, executed: Executed) -> None:
        self._real = real
        self._raw: sqlite3.Connection = real.connection.driver_connection  # type: ignore[assignment]
        self._executed = executed
        self.dialect = real.dialect

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def scalar(self, statement: Any, parameters: Any = None) -> Any:
        return self.execute(statement, parameters).scalar()

    def exec_driver_sql(self, text: str, values: tuple[Any, ...] = ()) -> "Result":
        """Execute a statement that is written as SQL."""
        cursor = self._raw.execute(text, values)
        self._executed(text, cursor.rowcount)
        return Result(cursor, tuple)

    def execute(self, statement: Any, parameters: Any = None) -> "Result":
        """Execute a statement, for each of ``parameters`` if it is a list."""
        many = isinstance(parameters, list | tuple)
        if many and len(parameters) == 1:
            # As SQLAlchemy does it.
            parameters, many = parameters[0], False
        first = parameters[0] if many else parameters
        plan, bound = _plan(statement, tuple(first) if first else (), many, self.dialect)
        cursor = self._raw.cursor()
        text = plan.text
        try:
            if many:
                cursor.executemany(text, [_values(plan, each, bound) for each in parameters])
            elif plan.expands:
                text, values = _expanded(plan, parameters or {}, bound)
                cursor.execute(text, values)
            else:
                cursor.execute(text, _values(plan, parameters or {}, bound))
        except sqlite3.Error as error:
            raise DBAPIError.instance(text, parameters, error, sqlite3.Error, dialect=self.dialect) from error
        self._executed(text, cursor.rowcount)
        return Result(cursor, plan.row)


class Result:
    """The rows of a statement."""

    def __init__(self, cursor: sqlite3.Cursor, row: Callable[[Any], Any] | None) -> None:
        self.rowcount = cursor.rowcount
        self._rows = [] if row is None else [row(each) for each in cursor.fetchall()]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def all(self) -> list[Any]:
        return self._rows

    def first(self) -> Any:
        return self._rows[0] if self._rows else None

    def one_or_none(self) -> Any:
        if len(self._rows) > 1:
            raise MultipleResultsFound("there are several rows")
        return self.first()

    def one(self) -> Any:
        if not self._rows:
            raise NoResultFound("there is no row")
        return self.one_or_none()

    def scalar(self) -> Any:
        return self._rows[0][0] if self._rows else None

    def scalar_one(self) -> Any:
        return self.one()[0]

    def scalar_one_or_none(self) -> Any:
        found = self.one_or_none()
        return None if found is None else found[0]

    def scalars(self) -> "Result":
        """The first column."""
        self._rows = [each[0] for each in self._rows]
        return self


_by_statement: WeakKeyDictionary[Any, dict[Any, tuple[Plan, Mapping[str, Any]]]] = WeakKeyDictionary()
_by_key: dict[Any, Plan] = {}
_by_lengths: dict[Any, tuple[str, tuple[tuple[str, int | None], ...]]] = {}
"""The texts of statements with lists as parameters, by their plan and the lengths of the lists; and of each
parameter of a text the name, and its place in the list that it is from."""


def _plan(statement: Any, names: tuple[str, ...], many: bool, dialect: Any) -> tuple[Plan, Mapping[str, Any]]:
    """How a statement is executed, and the values that are bound in it."""
    # A statement of a module is the same object each time.
    known = _by_statement.get(statement)
    if known is None:
        known = _by_statement[statement] = {}
    found = known.get((names, many))
    if found is None:
        made = statement._generate_cache_key()
        key = made.key, names, many
        plan = _by_key.get(key)
        if plan is None:
            plan = _by_key[key] = _compiled(statement, names, many, dialect, made)
        bound = plan.compiled.construct_params(
            extracted_parameters=made.bindparams, escape_names=False, _check=False
        )
        found = known[names, many] = plan, bound
    return found


def _compiled(statement: Any, names: tuple[str, ...], many: bool, dialect: Any, key: Any) -> Plan:
    options: dict[str, Any] = {"column_keys": list(names), "for_executemany": many, "cache_key": key}
    compiled: SQLCompiler = statement._compiler(dialect, **options)
    assert not compiled.insert_prefetch and not compiled.update_prefetch, "a column has a default"
    columns = compiled._result_columns
    row = None
    if columns:
        kind = namedtuple("Row", [each[0] for each in columns], rename=True)  # type: ignore[misc]
        readers = [each[3]._cached_result_processor(dialect, None) for each in columns]
        row = _reader(kind, readers) if any(readers) else kind._make
    expands = bool(compiled.post_compile_params or compiled.literal_execute_params)
    names = tuple(compiled.positiontup or ())
    return Plan(compiled, str(compiled), names, compiled._bind_processors, expands, row)


def _reader(kind: Any, readers: Sequence[Any]) -> Callable[[Any], Any]:
    def read(row: Any) -> Any:
        return kind._make(
            value if reader is None else reader(value) for value, reader in zip(row, readers, strict=True)
        )

    return read


def _values(plan: Plan, parameters: Mapping[str, Any], bound: Mapping[str, Any]) -> list[Any]:
    """The values of the parameters of one execution, in their order."""
    values = {**bound, **parameters}
    processors = plan.processors
    if not processors:
        return [values[name] for name in plan.names]
    return [processors[name](values[name]) if name in processors else values[name] for name in plan.names]


def _expanded(plan: Plan, parameters: Mapping[str, Any], bound: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The text and the values of a statement with lists as parameters."""
    values = {**bound, **parameters}
    compiled = plan.compiled
    lists = [values[compiled.bind_names[each]] for each in compiled.post_compile_params]
    if compiled.literal_execute_params or any(each and type(each[0]) is tuple for each in lists):
        return _expanded_by_sqlalchemy(plan, values)
    key = compiled, tuple([len(each) for each in lists])
    known = _by_lengths.get(key)
    if known is None:
        known = _by_lengths[key] = _places(plan, values)
    text, places = known
    processors = plan.processors
    found = []
    for name, place in places:
        value = values[name] if place is None else values[name][place]
        found.append(processors[name](value) if name in processors else value)
    return text, found


def _places(plan: Plan, values: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, int | None], ...]]:
    """The text for lists of these lengths, and where its values are from."""
    expanded = plan.compiled._process_parameters_for_postcompile(dict(values))
    places: dict[str, tuple[str, int | None]] = {}
    for name, parts in expanded.parameter_expansion.items():
        for place, part in enumerate(parts):
            places[part] = name, place
    return expanded.statement, tuple(places.get(name, (name, None)) for name in expanded.positiontup or ())


def _expanded_by_sqlalchemy(plan: Plan, values: dict[str, Any]) -> tuple[str, list[Any]]:
    expanded = plan.compiled._process_parameters_for_postcompile(values)
    values.update(expanded.additional_parameters)
    processors = {**plan.processors, **expanded.processors}
    names = expanded.positiontup or ()
    return expanded.statement, [
        processors[name](values[name]) if name in processors else values[name] for name in names
    ]

"""Conditions that a column has one of several values.

SQLAlchemy writes ``column IN (…)`` with a parameter for each value, so the text of a statement depends on
their number: SQLAlchemy builds it anew for each execution, and PostgreSQL parses and plans it anew.
Statements that are executed often need a text that stays the same.
"""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.visitors import InternalTraversal


def one_of(column: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
    """Return the condition that a column of texts or numbers has one of the values of parameter ``name``.

    On PostgreSQL the values are one parameter, an array; elsewhere each value is a parameter, as in ``IN``.
    """
    return _OneOf(column, name)


def one_of_constants(column: sa.ColumnElement[Any], values: Iterable[str]) -> sa.ColumnElement[bool]:
    """Return the condition that a column has one of the words in ``values``, which are written into the SQL.

    Raises:
        ValueError: a value is not a word of letters, digits, ``_`` and ``-``.
    """
    words = sorted(values)
    for word in words:
        if not word.replace("-", "_").isidentifier():
            raise ValueError(f"not a word: {word!r}")
    return column.in_([sa.literal_column(f"'{word}'") for word in words])


class _OneOf(sa.ColumnElement[bool]):
    inherit_cache = True
    # Otherwise SQLAlchemy appends `= 1` on SQLite and MariaDB, which have no booleans.
    _is_implicitly_boolean = True
    _traverse_internals = [  # noqa: RUF012
        ("column", InternalTraversal.dp_clauseelement),
        ("name", InternalTraversal.dp_string),
    ]

    def __init__(self, column: sa.ColumnElement[Any], name: str) -> None:
        self.column = column
        self.name = name
        self.type = sa.Boolean()


@compiles(_OneOf)
def _as_in(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    values: sa.BindParameter[Any] = sa.bindparam(element.name, expanding=True, type_=element.column.type)
    return compiler.process(element.column.in_(values), **options)


@compiles(_OneOf, "postgresql")
def _as_any(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    # An array of VARCHAR(36) would truncate longer values: a row would match by its first 36 characters.
    of_column = element.column.type
    item: sa.types.TypeEngine[Any] = sa.Text() if isinstance(of_column, sa.String) else of_column
    values: sa.BindParameter[Any] = sa.bindparam(element.name, type_=ARRAY(item, dimensions=1))
    return compiler.process(element.column == sa.any_(values), **options)

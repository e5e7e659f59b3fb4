"""Works that would do again what they did before: their results are kept until what they read has changed.

Machines poll. In simulated time a poll costs nothing but its statements, and these would be nearly all that a
schedule costs. A work that changed nothing has the same result again while the columns that its statements
name are as they were: a work has no other input than its own fields and the database.
"""

import re
from collections.abc import Callable, Iterable
from copy import copy
from functools import cache
from typing import Any, NamedTuple

Column = tuple[str, str]
"""Table and column. The column ``+`` stands for the set of rows, ``*`` for all columns."""

_QUALIFIED = re.compile(r"\b([A-Za-z_]\w*)\.([A-Za-z_]\w*)\b")
_WORD = re.compile(r"[A-Za-z_]\w*")
_SET = re.compile(r"\bSET\b(.*?)(?:\bWHERE\b|\bRETURNING\b|$)", re.DOTALL)
_TARGET = re.compile(r"^\s*(?:INSERT(?:\s+OR\s+\w+)?\s+INTO|UPDATE|DELETE\s+FROM)\s+(\w+)")
_CREATED = re.compile(r"^\s*CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)", re.IGNORECASE)
_LITERAL = re.compile(r"'[^']*'")


class Statement(NamedTuple):
    """The columns that a statement reads, and those that it changes if it changes a row."""

    reads: tuple[Column, ...]
    changes: tuple[Column, ...]


UNSEEN = Statement((), ())
"""A statement of which it cannot be seen what it reads."""


class Kept(NamedTuple):
    """A result, and the versions of the columns that it came from."""

    result: Any
    reads: dict[Column, int]


class RepeatedWorks:
    """The results of works on one database that changed nothing. ``tables``: those of the database."""

    def __init__(self, tables: Iterable[str]) -> None:
        self._tables = frozenset(tables)
        self._parsed: dict[str, Statement] = {}
        self._versions: dict[Column, int] = {}
        self._kept: dict[Any, Kept] = {}
        self._reads: dict[Column, int] = {}
        self._changed = False

    def run(self, key: Any, work: Callable[[], Any]) -> Any:
        """The kept result of a work, or that of running it now."""
        kept = self._kept.get(key)
        # Each column that was read has a version.
        if kept is not None and kept.reads.items() <= self._versions.items():
            return copy(kept.result)
        self._reads = {}
        self._changed = False
        result = work()
        if not self._changed:
            self._kept[key] = Kept(copy(result), self._reads)
        return result

    def forget(self) -> None:
        """Another state is in the database."""
        self._kept.clear()

    def executed(self, text: str, rows: int) -> None:
        """A statement was executed that changed ``rows`` rows."""
        known = self._parsed.get(text)
        if known is None:
            created = _CREATED.match(text)
            if created is not None:
                self._tables |= {created.group(1)}
                self._parsed = {}
            known = self._parsed[text] = _parsed(text, self._tables)
        if known is UNSEEN:
            self._changed = True
            return
        reads, versions = self._reads, self._versions
        for column in known.reads:
            reads[column] = versions.setdefault(column, 0)
        if rows and known.changes:
            self._changed = True
            for column in known.changes:
                versions[column] = versions.get(column, 0) + 1


@cache
def _parsed(text: str, tables: frozenset[str]) -> Statement:
    """What a statement reads and changes; `UNSEEN` if that cannot be seen: its work is run each time."""
    text = _LITERAL.sub("''", text)
    words = set(_WORD.findall(text))
    named = words & tables
    qualified = _QUALIFIED.findall(text)
    reads = {(table, "+") for table in named}
    if not named or not all(table in tables for table, _ in qualified):
        return UNSEEN
    if qualified:
        reads.update(qualified)
    else:
        reads.update((table, "*") for table in named)
    target = _TARGET.match(text)
    if target is None:
        return Statement(tuple(reads), ())
    table = target.group(1)
    changes = {(table, "*")}
    if text.lstrip().startswith("UPDATE"):
        assigned = _SET.search(text)
        changes.update((table, column) for column in _WORD.findall(assigned.group(1) if assigned else ""))
    else:
        changes.add((table, "+"))
    return Statement(tuple(reads), tuple(changes))

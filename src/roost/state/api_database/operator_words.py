"""The words of operators in the API database."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import Requester
from roost.model.operator_word import SaidWord, Subject
from roost.model.text import clean_text
from roost.state.api_database.aggregates.store import (
    AggregateChanges,
    next_version,
    read_changes,
    read_version,
)
from roost.state.api_database.drains import end_early, is_live, is_moving
from roost.state.api_database.event_types import CloudEvent, EventKind
from roost.state.api_database.events import append_events
from roost.state.api_database.tables import SCHEMA, operator_words
from roost.storage import Database, in_batches, transaction


class SaidChanges(NamedTuple):
    """Words of operators and changes of host aggregates, up to a version.

    ``whole``: these are all words, not only those since an earlier version.
    """

    version: int
    words: list[SaidWord]
    aggregates: AggregateChanges
    whole: bool


class WordStore:
    """The last word on each subject. Raises `StorageError` if the database cannot be used.

    A word takes its version from the counter of host aggregates: a reader that has seen a version has seen
    all words before it.
    """

    def __init__(self, database: Database) -> None:
        SCHEMA.prepare(database)
        self._database = database

    async def say(self, words: Iterable[SaidWord], by: Requester | None = None) -> None:
        """Store words, in place of the earlier ones on the same subjects. ``by``: the requester."""
        await self._database.write(say_words(tuple(words), by))

    async def withdraw(self, cell: str, host: str, node: str | None = None) -> None:
        """Remove the words on a removed host and its nodes, or on a removed node.

        A later host or node of the name begins without a word.
        """
        await self._database.write(lambda connection: withdraw_words(connection, cell, host, node))

    async def changes(self, after: int | None = None) -> SaidChanges | None:
        """Return the changes since a version, None if there are none; without a version, all words."""

        def read(connection: Connection) -> SaidChanges | None:
            version = read_version(connection)
            if version == after:
                return None
            whole = after is None or after > version
            newer = _ALL if whole else _ALL.where(operator_words.c.version > after)
            words = [_word(row) for row in connection.execute(newer)]
            return SaidChanges(version, words, read_changes(connection, version, after), whole)

        return await self._database.read(read)

    async def of_hosts(self, hosts: Collection[str]) -> dict[Subject, SaidWord]:
        """Return the words on some hosts and their nodes, in all cells."""

        def read(connection: Connection) -> dict[Subject, SaidWord]:
            found = (
                _word(row)
                for some in in_batches(hosts)
                for row in connection.execute(_ALL.where(operator_words.c.host.in_(some)))
            )
            return {each.subject: each for each in found}

        return await self._database.read(read)

    async def of_cells(self) -> Mapping[str, SaidWord]:
        """Return the words on whole cells, by cell."""
        rows = _ALL.where(operator_words.c.host == "")
        return await self._database.read(
            lambda connection: {row.cell: _word(row) for row in connection.execute(rows)}
        )

    async def by_cell(self) -> dict[str, list[SaidWord]]:
        """Return all words, by cell."""

        def read(connection: Connection) -> dict[str, list[SaidWord]]:
            found: dict[str, list[SaidWord]] = {}
            for row in connection.execute(_ALL.order_by(*_SUBJECT)):
                found.setdefault(row.cell, []).append(_word(row))
            return found

        return await self._database.read(read)


_ALL = sa.select(operator_words)
_SUBJECT = (operator_words.c.cell, operator_words.c.host, operator_words.c.node)


@transaction
def say_words(connection: Connection, words: tuple[SaidWord, ...], by: Requester | None) -> None:
    """Store words, as `WordStore.say`."""
    version = next_version(connection)
    ended: list[CloudEvent] = []
    for word in words:
        values = {
            "enabled": word.enabled,
            "reason": None if word.enabled or word.reason is None else clean_text(word.reason),
            "at": word.at,
            "version": version,
            "moves_version": version if word.moves and not word.enabled else None,
            "live_version": version if word.moves and word.live and not word.enabled else None,
        }
        this = [column == part for column, part in zip(_SUBJECT, word.subject, strict=True)]
        before = connection.execute(sa.select(operator_words).where(*this)).one_or_none()
        goes_on = before is not None and not before.enabled and not word.enabled
        values["since"] = before.since or before.at if before is not None and goes_on else word.at
        if word.enabled:
            ended += end_early(connection, this, word.at, "it was enabled before it was empty")
        else:
            # The drain of a subject that was disabled before goes on.
            same = ~operator_words.c.enabled, operator_words.c.drain_version == operator_words.c.version
            connection.execute(sa.update(operator_words).where(*this, *same).values(drain_version=version))
        # No other transaction writes words before this one ends.
        if not connection.execute(sa.update(operator_words).where(*this).values(values)).rowcount:
            connection.execute(sa.insert(operator_words), {**word.subject._asdict(), **values})
    append_events(connection, [*ended, *(_told(word, by) for word in words)])


def _told(word: SaidWord, by: Requester | None) -> CloudEvent:
    cell, host, node = word.subject
    what = "node" if node else "host" if host else "cell"
    return CloudEvent(
        at=word.at,
        kind=msgspec.convert(f"{what}_{'enabled' if word.enabled else 'disabled'}", EventKind),
        cell=cell,
        host=host or None,
        node=node or None,
        detail=None if word.enabled else word.reason,
        by=by,
    )


def withdraw_words(
    connection: Connection, cell: str, host: str | None = None, node: str | None = None
) -> None:
    """Remove words as `WordStore.withdraw` does; without a host, all words on a cell."""
    named = zip(_SUBJECT, (cell, host, node), strict=True)
    these = [column == part for column, part in named if part is not None]
    values = {"enabled": True, "reason": None, "version": next_version(connection)}
    connection.execute(sa.update(operator_words).where(*these).values(values))


def _word(row: sa.Row[tuple[object, ...]]) -> SaidWord:
    subject = Subject(row.cell, row.host, row.node)
    return SaidWord(subject, row.enabled, row.reason, row.at, is_moving(row), is_live(row))

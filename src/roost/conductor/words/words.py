"""Says operators' words: a word counts for all schedulers when its request is answered."""

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from roost.conductor.hosts.features import held_back_by
from roost.conductor.hosts.watch import ServiceWatch
from roost.conductor.words.mirror import WordMirror
from roost.conductor.words.traits import TraitPlacement, show_nodes
from roost.model.instance import Requester
from roost.model.operator_word import SaidWord, Subject
from roost.model.service_version import WORDS
from roost.state.api_database.asking_cells import ask_cell
from roost.state.api_database.operator_words import WordStore
from roost.state.cell_database import Cell
from roost.state.cell_database.disabled import read_offered
from roost.state.cell_database.host_work import SESSION
from roost.storage import Database

MARK_BITS = 53
"""Bits of the mark of an announcement, so that every client has an exact integer for it."""

_log = structlog.get_logger()


class Announcing(TraitPlacement, Protocol):
    """The part of `roost.placement.interface.Placement` that is needed."""

    async def announce_word(self, mark: int) -> None: ...


class Words:
    """Says words. The order makes them count: a word is stored, then announced, then answered.

    Until it is announced, a word may count or not. If the announcement fails, the word stays stored: it
    counts within seconds, or when it is repeated. Raises `StorageError`, and what placement raises.

    ``clock``: seconds since the epoch. ``marks``: draws the marks of announcements.
    """

    def __init__(
        self,
        api: Database,
        cells: Mapping[str, Cell],
        placement: Announcing,
        clock: Callable[[], float] = time.time,
        marks: Callable[[], int] = lambda: secrets.randbits(MARK_BITS) or 1,
    ) -> None:
        self.store = WordStore(api)
        self.mirror = WordMirror(self.store, cells)
        self._cells = cells
        self._placement = placement
        self._clock = clock
        self._marks = marks
        self._watch: ServiceWatch | None = None

    def follow(self, watch: ServiceWatch) -> None:
        """Announce nothing while ``watch`` sees conductors that do not understand announcements."""
        self._watch = watch

    async def say(
        self, subject: Subject, enabled: bool, reason: str | None = None, by: Requester | None = None
    ) -> None:
        """Enable or disable a subject. The flags of its cell follow when that answers. ``by``: requester."""
        word = SaidWord(subject, enabled, reason, self._clock())
        await self.store.say([word], by)
        if enabled:
            # Its agent hides it in placement until it learns of the word by the cell's flag.
            await self._show(word)
        await self.announce()
        self.mirror.said.set()

    async def announce(self) -> None:
        """Announce the stored words: no scheduler commits a decision that was made without them any more."""
        if self._watch is not None and _older(self._watch):
            _log.info("a word is not announced: a conductor is of an earlier version", needed=WORDS.since)
            return
        await self._placement.announce_word(self._marks())

    async def _show(self, word: SaidWord) -> None:
        """Show the nodes of an enabled host or cell in placement again, as far as the cell answers."""
        cell, host, node = word.subject
        if node or cell not in self._cells:
            return
        await self.mirror.bring(cell, [word])
        offered = await ask_cell(self._cells[cell], read_offered(host or None))
        await show_nodes(self._placement, offered or ())


def _older(watch: ServiceWatch) -> bool:
    """Return whether conductors of a version before words are up. Agents do not read commits."""
    return any(each.lease.kind != SESSION for each in held_back_by(watch, WORDS))

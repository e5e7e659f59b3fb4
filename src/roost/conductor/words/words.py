"""Says operators' words: a word counts for all schedulers when its request is answered.

A word is mirrored to flags in the cells' databases, from which agents learn of it. An enabled node loses the
trait that hides it in placement. Agents add and remove it as well, but the agent of a host may learn seconds
later that the host is enabled.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import structlog

from roost.conductor.hosts.watch import ServiceWatch, held_back_by
from roost.model.instance import Requester
from roost.model.operator_word import SaidWord, Subject
from roost.model.service_version import WORDS
from roost.model.text import error_text
from roost.model.vocabulary import DISABLED_TRAIT
from roost.placement.errors import ConcurrentUpdate, NotFound
from roost.placement.interface import Provider
from roost.state.api_database.open_cells import ask_cell
from roost.state.api_database.operator_words import WordStore
from roost.state.cell_database import Cell
from roost.state.cell_database.cell import changed
from roost.state.cell_database.disabled import mirror_words, read_flags, read_offered
from roost.state.cell_database.host_work import SESSION
from roost.storage import Database, StorageError

_log = structlog.get_logger()
MARK_BITS = 53
"""Bits of the mark of an announcement, so that every client has an exact integer for it."""

ATTEMPTS = 4
"""Attempts to write a provider that others change at the same time. After that the agent does it."""

AT_ONCE = 32
"""Providers that are read and written at the same time."""

EVERY_SECONDS = 60.0
"""Seconds between two looks at all cells while nothing changes."""

CELL_SECONDS = 10.0
"""Seconds that a cell has to store a word; after that it gets the word in a later round."""


class TraitPlacement(Protocol):
    """The part of `roost.placement.interface.Placement` that is needed."""

    async def provider(self, uuid: str) -> Provider | None: ...

    async def traits(self, provider: str) -> frozenset[str]: ...

    async def set_traits(
        self, provider: str, traits: Iterable[str], generation: int | None = None
    ) -> int: ...


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
        self,
        subject: Subject,
        enabled: bool,
        reason: str | None = None,
        by: Requester | None = None,
        moves: bool = False,
        live: bool = False,
    ) -> None:
        """Enable or disable a subject. The flags of its cell follow when that answers.

        ``by``: requester. ``moves``: instances on a disabled subject are moved away. ``live``: while they
        run, if they can.
        """
        word = SaidWord(subject, enabled, reason, self._clock(), moves, live)
        await self.store.say([word], by)
        await self.follow_up([word])

    async def follow_up(self, words: Sequence[SaidWord]) -> None:
        """Make words count that are stored already. A repeated call changes nothing.

        Raises `StorageError`, and what placement raises.
        """
        for word in words:
            if word.enabled:
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


async def show_nodes(placement: TraitPlacement, nodes: Sequence[str]) -> None:
    """Take the trait off some nodes. Raises what placement raises."""
    for first in range(0, len(nodes), AT_ONCE):
        await asyncio.gather(*(_show(placement, node) for node in nodes[first : first + AT_ONCE]))


async def _show(placement: TraitPlacement, node: str) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            present = await placement.traits(node)
            if DISABLED_TRAIT not in present:
                return
            # The generation is read first: a change between the two reads makes the write fail.
            found = await placement.provider(node)
            if found is None:
                return
            present = await placement.traits(node)
            await placement.set_traits(node, present - {DISABLED_TRAIT}, found.generation)
            return
        except NotFound:
            return
        except ConcurrentUpdate:
            if attempt == ATTEMPTS:
                raise


class WordMirror:
    """Keeps the flags of each cell equal to the words. Several mirrors may run.

    ``said``: set when a word was said. A cell that is down is brought up to date when it is back.
    """

    def __init__(self, store: WordStore, cells: Mapping[str, Cell]) -> None:
        self.said = asyncio.Event()
        self._store = store
        self._cells = cells

    async def run(self) -> None:
        """Call `heal` after each word and every `EVERY_SECONDS`, until cancelled."""
        while True:
            try:
                await self.heal()
            except StorageError as error:
                _log.warning("operators' words cannot be read", error=error_text(error))
            await changed(self.said, EVERY_SECONDS)

    async def heal(self) -> None:
        """Bring all cells that answer in line once. Raises `StorageError` of the API database.

        A slow cell may get a word late, over a newer one that another process has brought to it meanwhile. So
        the words are read again afterwards, and changed ones are brought to the cell again.
        """
        brought: dict[str, list[SaidWord]] = {}
        while newer := _differing(await self._store.by_cell(), brought):
            await asyncio.gather(*(self.bring(name, said) for name, said in newer.items()))
            brought |= newer

    async def bring(self, name: str, words: Sequence[SaidWord]) -> None:
        """Bring the flags of one cell in line with some words. A failure is logged, and repaired later."""
        cell = self._cells.get(name)
        if cell is None:
            return
        try:
            async with asyncio.timeout(CELL_SECONDS):
                there = await cell.read(read_flags(name))
                if any(word.enabled == (word.subject in there) for word in words):
                    await cell.write(mirror_words(tuple(words)))
        except (StorageError, TimeoutError) as error:
            _log.warning("a cell gets an operator's word later", cell=name, error=error_text(error))


def _differing(
    words: Mapping[str, list[SaidWord]], brought: Mapping[str, list[SaidWord]]
) -> dict[str, list[SaidWord]]:
    """Return the words on the cells whose words differ from those that were brought to them."""
    return {name: said for name, said in words.items() if said != brought.get(name)}

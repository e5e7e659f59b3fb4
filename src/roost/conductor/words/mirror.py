"""Mirrors operators' words to the flags in the cells' databases, and repairs differences there."""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from roost.model.operator_word import SaidWord
from roost.model.text import error_text
from roost.state.api_database.operator_words import WordStore
from roost.state.cell_database import Cell
from roost.state.cell_database.cell import changed
from roost.state.cell_database.disabled import mirror_words, read_flags
from roost.storage import StorageError

EVERY_SECONDS = 60.0
"""Seconds between two looks at all cells while nothing changes."""

CELL_SECONDS = 10.0
"""Seconds that a cell has to store a word; after that it gets the word in a later round."""

_log = structlog.get_logger()


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

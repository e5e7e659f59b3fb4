"""Reading for the next batch while this one is made durable.

A batch needs to know what the consumers hold that its commands name, as of the commit that it goes on top
of: one look into the database before each append, which took as long as the append. While a batch is being
appended, the commands of the next one are waiting already. So they are looked up meanwhile, and what is found
is used if it is certain that nothing has come between.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from roost.ledger.tail import News, Position
from roost.model.change import AllocationsChanged, Change
from roost.storage import StorageError


@dataclass
class Ahead:
    """A look that was begun while ``changes`` were appended on top of ``since``, for the ``batch`` that
    waited then and the ``consumers`` it names. ``appended``: where the append got to, None if nowhere.
    """

    batch: Sequence[object]
    consumers: frozenset[str]
    since: Position
    changes: Iterable[Change]
    reading: asyncio.Task[News]
    appended: Position | None = None

    def is_for(self, batch: Sequence[object]) -> bool:
        """Whether these are the first of the commands that were looked up."""
        return len(batch) <= len(self.batch) and all(
            ours is theirs for ours, theirs in zip(batch, self.batch, strict=False)
        )

    async def news(self, at: Position) -> News | None:
        """What the batch needs to run on the fleet at ``at``; None if the look does not tell that.

        It does if it saw just that commit. It does as well if it saw the one before, and that commit is our
        own and has not touched what the consumers hold. Nothing that was durable when the commands came is
        missed: they came before the look. Nor is anything that has come since: the append would be outrun.
        """
        try:
            news = await self.reading
        except StorageError:
            return None  # whoever looks again hears of it, if it lasts
        if news.fleet is not None:
            return None
        if news.at == at:
            return news
        if at == self.appended and news.at == self.since and self.consumers.isdisjoint(self._touched()):
            return news
        return None

    def _touched(self) -> set[str]:
        return {change.consumer for change in self.changes if isinstance(change, AllocationsChanged)}

"""The facts of an instance in Nova's databases that decide if a claim of it may stand beside another."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from roost.nova.database.states import EVACUATION


class UnfinishedMigration(msgspec.Struct, frozen=True):
    """A migration of an instance that has not ended.

    ``uuid`` is also the consumer that holds the claim on the source, unless it is an evacuation. ``kind`` is
    Nova's ``migration_type``.
    """

    uuid: str
    kind: str
    source_host: str
    source_node: str


class InstanceFacts(msgspec.Struct, frozen=True):
    """The row of an instance in its cell, and its migrations that have not ended, the newest first.

    ``host`` and ``node`` (the node's name) are None while it is on no host, such as one that is shelved and
    offloaded.
    """

    cell: str
    host: str | None
    node: str | None
    migrations: Sequence[UnfinishedMigration] = ()

    @property
    def evacuation(self) -> UnfinishedMigration | None:
        """The evacuation from the present host that has not ended; None if there is none."""
        return next(
            (each for each in self.migrations if each.kind == EVACUATION and each.source_host == self.host),
            None,
        )

    @property
    def holder(self) -> str | None:
        """The consumer that holds the claim on the source of a move; None if no move has one."""
        return next((each.uuid for each in self.migrations if each.kind != EVACUATION), None)


class InstanceSource(Protocol):
    """The rows of instances in the databases of all cells."""

    async def facts(self, instance: str) -> InstanceFacts | None:
        """Return the facts of an instance; None if no cell has a row of it, and all were read.

        Raises:
            StorageError: it is in no cell that answers, and some do not answer.
        """

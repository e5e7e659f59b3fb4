"""Reads single providers and consumers as they were at a version, by the index and one database snapshot.

The state of a thing at a version is what the first later commit that changes it says was before, or the
present state if none does. So one commit is read for each part of a provider, and one for each consumer that
has changed since, however many commits lie between.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.dashboard.past.index_entries import Touch, key_of
from roost.dashboard.past.index_view import IndexView, ProviderPosts
from roost.dashboard.past.present_rows import (
    PresentProvider,
    present_children,
    present_holders,
    present_providers,
)
from roost.ledger.feed import decode_changes
from roost.ledger.holdings import held_by
from roost.ledger.state import Held
from roost.ledger.tables import commits
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    Change,
    GenerationChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    TraitsChanged,
)
from roost.model.inventory import Inventory
from roost.storage import NAMES_PER_STATEMENT, one_of

T = TypeVar("T")


class PastReader:
    """Reads the state at a version.

    ``view``: it must reach from the version to the head of the connection's snapshot.
    """

    def __init__(self, connection: Connection, view: IndexView, version: int) -> None:
        self._connection = connection
        self._view = view
        self._version = version
        self._changes: dict[int, list[Change]] = {}
        self._posts: dict[str, ProviderPosts] = {}
        self._present: dict[str, PresentProvider | None] = {}

    # Providers

    def facts(self, uuid: str) -> ProviderFacts | None:
        """Return the facts of a provider; None if it did not exist."""
        posts = self.posts_of(uuid)
        seq = posts.first(Touch.FACTS | Touch.GENERATION)
        if seq is None:
            present = self._present_of(uuid)
            return None if present is None else present.facts
        changes = self._changes_of(seq)
        for change in changes:
            if isinstance(change, ProviderChanged) and change.provider == uuid:
                return change.before
            if isinstance(change, GenerationChanged) and change.provider == uuid:
                return self._facts_with(uuid, posts, change.before)
        return None

    def inventories(self, uuid: str) -> dict[str, Inventory]:
        """Return the inventories of a provider that existed."""
        change = self._first_change(uuid, Touch.INVENTORY, InventoryChanged)
        if change is not None:
            return change.before
        present = self._present_of(uuid)
        return {} if present is None else present.inventories

    def traits(self, uuid: str) -> tuple[str, ...]:
        """Return the traits of a provider that existed, sorted."""
        change = self._first_change(uuid, Touch.TRAITS, TraitsChanged)
        if change is not None:
            return change.before
        present = self._present_of(uuid)
        return () if present is None else present.traits

    def aggregates(self, uuid: str) -> tuple[str, ...]:
        """Return the aggregates of a provider that existed, sorted."""
        change = self._first_change(uuid, Touch.AGGREGATES, AggregatesChanged)
        if change is not None:
            return change.before
        present = self._present_of(uuid)
        return () if present is None else present.aggregates

    def children(self, uuids: Sequence[str]) -> list[str]:
        """Return the children of some providers, in no order."""
        found: set[str] = set()
        now = present_children(self._connection, uuids)
        left: set[int] = set()
        for uuid in uuids:
            found.update(now.get(uuid, ()))
            left.update(self.posts_of(uuid).all(Touch.CHILD))
        self._fetch(left)
        parents = set(uuids)
        for seq in left:
            for change in self._changes[seq]:
                if not isinstance(change, ProviderChanged) or change.before is None:
                    continue
                if change.before.parent in parents:
                    found.add(change.provider)
        self.prepare(found)
        return [uuid for uuid in found if (facts := self.facts(uuid)) is not None and facts.parent in parents]

    def holders(self, uuids: Sequence[str]) -> dict[str, Held]:
        """Return the consumers that held something of some providers, with all their allocations."""
        changed: set[int] = set()
        firsts: dict[int, int] = {}
        for uuid in uuids:
            consumers, of_holders = self.posts_of(uuid).first_of_consumers()
            changed |= consumers
            firsts |= of_holders
        now = {each for some in present_holders(self._connection, uuids).values() for each in some}
        found = held_by(self._connection, (uuid for uuid in now if key_of(uuid) not in changed))
        self._fetch(firsts.values())
        providers = set(uuids)
        for seq in set(firsts.values()):
            begun: set[str] = set()
            for change in self._changes[seq]:
                if not isinstance(change, AllocationsChanged) or change.consumer in begun:
                    continue
                begun.add(change.consumer)
                if firsts.get(key_of(change.consumer)) == seq and providers & change.held.keys():
                    assert change.before is not None
                    found[change.consumer] = Held(change.before, change.held)
        return found

    # Consumers

    def consumer(self, uuid: str) -> Held | None:
        """Return a consumer with its allocations; None if it did not exist."""
        seq = self._view.next_change(uuid, self._version)
        if seq is None:
            return held_by(self._connection, (uuid,)).get(uuid)
        for change in self._changes_of(seq):
            if isinstance(change, AllocationsChanged) and change.consumer == uuid:
                return None if change.before is None else Held(change.before, change.held)
        return None

    # Reading

    def prepare(self, uuids: Iterable[str]) -> None:
        """Read the present rows of some providers together, and the commits that their parts need."""
        new = [uuid for uuid in uuids if uuid not in self._present]
        now = present_providers(self._connection, new)
        seqs: set[int] = set()
        for uuid in new:
            self._present[uuid] = now.get(uuid)
            posts = self.posts_of(uuid)
            firsts = (posts.first(touch) for touch in _PARTS)
            seqs.update(seq for seq in firsts if seq is not None)
        self._fetch(seqs)

    def _first_change(self, uuid: str, touch: Touch, kind: type[T]) -> T | None:
        seq = self.posts_of(uuid).first(touch)
        if seq is None:
            return None
        for change in self._changes_of(seq):
            if isinstance(change, kind) and getattr(change, "provider", None) == uuid:
                return change
        return None

    def _facts_with(self, uuid: str, posts: ProviderPosts, generation: int) -> ProviderFacts | None:
        """Return name and parent of a provider with a generation that it had."""
        change = self._first_change(uuid, Touch.FACTS, ProviderChanged)
        if change is None:
            present = self._present_of(uuid)
            facts = None if present is None else present.facts
        else:
            facts = change.before
        return None if facts is None else ProviderFacts(facts.name, facts.parent, generation)

    def posts_of(self, uuid: str) -> ProviderPosts:
        """Return the commits after the version that touch a provider."""
        posts = self._posts.get(uuid)
        if posts is None:
            posts = self._posts[uuid] = self._view.posts_of(uuid, self._version)
        return posts

    def _present_of(self, uuid: str) -> PresentProvider | None:
        if uuid not in self._present:
            self.prepare((uuid,))
        return self._present[uuid]

    def _changes_of(self, seq: int) -> list[Change]:
        self._fetch((seq,))
        return self._changes[seq]

    def _fetch(self, seqs: Iterable[int]) -> None:
        missing = sorted(seq for seq in seqs if seq not in self._changes)
        for at in range(0, len(missing), NAMES_PER_STATEMENT):
            some = missing[at : at + NAMES_PER_STATEMENT]
            for seq, text in self._connection.execute(_TEXTS, {"seqs": some}):
                self._changes[seq] = decode_changes(text)


_PARTS: Final = (Touch.FACTS | Touch.GENERATION, Touch.FACTS, Touch.INVENTORY, Touch.TRAITS, Touch.AGGREGATES)
_TEXTS = sa.select(commits.c.seq, commits.c.changes).where(one_of(commits.c.seq, "seqs"))

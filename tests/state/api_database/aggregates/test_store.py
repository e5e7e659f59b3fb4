"""Host aggregates in a database: versions, names, members, and changes at the same moment."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest
from msgspec.structs import replace

from roost.model.aggregate import Aggregate
from roost.state.api_database.aggregates.errors import (
    AggregateNotEmpty,
    NameTaken,
    NoSuchAggregate,
    SeveralZones,
)
from roost.state.api_database.aggregates.store import AggregateStore
from roost.state.api_database.aggregates.zones import ZoneChange
from roost.state.api_database.tables import SCHEMA
from roost.storage import Database
from support.databases import Place
from support.upgrading import upgrade_empty


def allow(changes: Mapping[str, ZoneChange]) -> None:
    """Let every node change its zone."""


def aggregate(name: str, *members: str, zone: str | None = None) -> Aggregate:
    metadata = {} if zone is None else {"availability_zone": zone}
    return Aggregate(uuid=f"uuid-{name}", name=name, metadata=metadata, members=frozenset(members))


def joining(*nodes: str) -> Callable[[Aggregate], Aggregate]:
    return lambda old: replace(old, members=old.members | set(nodes))


def leaving(*nodes: str) -> Callable[[Aggregate], Aggregate]:
    return lambda old: replace(old, members=old.members - set(nodes))


def using(place: Place, use: Callable[[AggregateStore, AggregateStore], Awaitable[None]]) -> None:
    """Use two stores on one database, as two processes do."""

    async def run() -> None:
        databases = [Database(place.at(number)) for number in range(2)]
        upgrade_empty(SCHEMA, databases[0])
        try:
            await use(AggregateStore(databases[0]), AggregateStore(databases[1]))
        finally:
            for database in databases:
                await database.close()

    asyncio.run(run())


def test_kept_changed_and_deleted(place: Place) -> None:
    async def use(store: AggregateStore, other: AggregateStore) -> None:
        assert await store.changes(0) is None
        [fast, rack] = await store.create(
            [aggregate("fast", "n1", "n2", zone="az1"), aggregate("rack", "n2")], allow
        )
        assert await other.find("uuid-fast") == replace(
            aggregate("fast", "n1", "n2", zone="az1"), generation=1
        )
        assert [(each.aggregate.name, each.members) for each in await other.page(9)] == [
            ("fast", 2),
            ("rack", 1),
        ]
        assert [each.aggregate.name for each in await other.page(1, "uuid-fast")] == ["rack"]
        assert [each.aggregate.name for each in await other.page(9, name="fast")] == ["fast"]
        first = await other.changes(0)
        assert first is not None
        assert (first.changed, first.all) == ([fast, rack], {"uuid-fast", "uuid-rack"})
        assert await other.changes(first.version) is None

        changed = await store.change("uuid-rack", joining("n3"), allow)
        assert (changed.generation, changed.members) == (2, {"n2", "n3"})
        assert await store.change("uuid-rack", joining("n3"), allow) == changed, "nothing to change"
        second = await other.changes(first.version)
        assert second is not None
        assert second.changed == [changed]

        with pytest.raises(AggregateNotEmpty, match="uuid-rack has 2 members"):
            await store.delete("uuid-rack")
        await store.change("uuid-rack", leaving("n2", "n3"), allow)
        await store.delete("uuid-rack")
        third = await other.changes(second.version)
        assert third is not None
        assert (third.changed, third.all) == ([], {"uuid-fast"})
        assert await other.deleted() == {"uuid-rack"}
        await store.forget(["uuid-rack"])
        assert await other.deleted() == frozenset()

    using(place, use)


def test_what_is_refused_changes_nothing(place: Place) -> None:
    async def use(store: AggregateStore, other: AggregateStore) -> None:
        await store.create([aggregate("one", "n1", zone="az1"), aggregate("two")], allow)
        before = await store.changes()
        for name in ("nobody", "\0", "x" * 99):
            with pytest.raises(NoSuchAggregate):
                await store.find(name)
        with pytest.raises(NoSuchAggregate, match="nobody"):
            await store.delete("nobody")
        with pytest.raises(NameTaken, match=r"uuid-one has the name 'one'"):
            await store.create([aggregate("three"), replace(aggregate("four"), name="one")], allow)
        with pytest.raises(NameTaken, match="'one'"):
            await store.change("uuid-two", lambda old: replace(old, name="one"), allow)
        with pytest.raises(SeveralZones, match="node n1"):
            await store.change(
                "uuid-two",
                lambda old: replace(old, members=frozenset({"n1"}), metadata={"availability_zone": "az2"}),
                allow,
            )

        def refuse(changes: Mapping[str, ZoneChange]) -> None:
            if changes:
                assert changes == {"n2": ZoneChange(None, "az1")}
                raise ValueError

        with pytest.raises(ValueError):
            await store.change("uuid-one", joining("n2"), refuse)
        assert await store.changes() == before

    using(place, use)


def test_two_changes_at_once_never_give_a_node_two_zones_and_none_is_missed(place: Place) -> None:
    async def use(store: AggregateStore, other: AggregateStore) -> None:
        await store.create([aggregate("one", zone="az1"), aggregate("two", zone="az2")], allow)
        seen: dict[str, frozenset[str]] = {}
        version = 0

        async def follow() -> None:
            nonlocal version
            changes = await other.changes(version)
            if changes is not None:
                version = changes.version
                seen.update({each.uuid: each.members for each in changes.changed})

        for number in range(6):
            results = await asyncio.gather(
                store.change("uuid-one", joining(f"n{number}"), allow),
                other.change("uuid-two", joining(f"n{number}"), allow),
                follow(),
                return_exceptions=True,
            )
            assert [type(each) for each in results].count(SeveralZones) == 1, results
        await follow()
        one, two = await store.find("uuid-one"), await store.find("uuid-two")
        assert not one.members & two.members
        assert len(one.members | two.members) == 6
        assert seen == {"uuid-one": one.members, "uuid-two": two.members}

    using(place, use)

"""The Placement service in this process: commands and queries on a ledger, without HTTP."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from roost.fleet import Fleet
from roost.ledger import Held, Ledger
from roost.ledger.holdings import consumers_on, held_by
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import ConsumerWrite, FreeConsumers, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.names import AddResourceClass
from roost.placement.commands.providers import CreateProvider, DeleteProvider, UpdateProvider
from roost.placement.commands.reshape import NewInventories, Reshape
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from roost.placement.commands.word import AnnounceWord
from roost.placement.errors import DuplicateName, NotFound
from roost.placement.interface import Provider
from roost.placement.known_names import provider_row
from roost.storage import NAMES_PER_STATEMENT


class PlacementService:
    """`roost.placement.interface.Placement` on a ledger of this process."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    async def ensure_provider(self, uuid: str, name: str, parent: str | None = None) -> Provider:
        found = await self.provider(uuid)
        if found is None:
            try:
                await self.ledger.execute(CreateProvider(uuid, name, parent))
            except DuplicateName:
                # Another writer may have created it meanwhile; if not, another provider has the name.
                if await self.provider(uuid) is None:
                    raise
            found = await self.provider(uuid)
        if found is None:
            raise NotFound(f"No resource provider with uuid {uuid} found")
        return found

    async def update_provider(self, uuid: str, name: str, parent: str | None) -> None:
        await self.ledger.execute(UpdateProvider(uuid, name, parent))

    async def delete_provider(self, uuid: str) -> None:
        await self.ledger.execute(DeleteProvider(uuid))

    async def provider(self, uuid: str) -> Provider | None:
        fleet = await self.ledger.current()
        return _provider(fleet, fleet.row(uuid)) if uuid in fleet else None

    async def tree(self, uuid: str) -> list[Provider]:
        fleet = await self.ledger.current()
        if uuid not in fleet:
            return []
        return [_provider(fleet, row) for row in fleet.subtree(fleet.root.item(fleet.row(uuid)))]

    async def provider_roots(self) -> dict[str, str]:
        fleet = await self.ledger.current()
        return {fleet.uuid(row): fleet.uuid(fleet.root.item(row)) for row in fleet.rows().tolist()}

    async def inventories(self, provider: str) -> dict[str, Inventory]:
        fleet = await self.ledger.current()
        return fleet.inventories(provider_row(fleet, provider))

    async def traits(self, provider: str) -> frozenset[str]:
        fleet = await self.ledger.current()
        return frozenset(fleet.traits_of(provider_row(fleet, provider)))

    async def aggregates(self, provider: str) -> frozenset[str]:
        fleet = await self.ledger.current()
        return frozenset(fleet.aggregates_of(provider_row(fleet, provider)))

    async def providers_in_aggregate(self, aggregate: str) -> frozenset[str]:
        fleet = await self.ledger.current()
        return frozenset(map(fleet.uuid, fleet.in_aggregate(aggregate).rows().tolist()))

    async def sharing_providers(self, aggregates: Collection[str]) -> list[Provider]:
        fleet = await self.ledger.current()
        rows = [
            row
            for row in fleet.sharing().rows().tolist()
            if not set(fleet.aggregates_of(row)).isdisjoint(aggregates)
        ]
        return sorted((_provider(fleet, row) for row in rows), key=lambda each: each.uuid)

    async def set_inventories(
        self, provider: str, inventories: Mapping[str, Inventory], generation: int | None = None
    ) -> int:
        return await self.ledger.execute(SetInventories(provider, dict(inventories), generation))

    async def set_traits(self, provider: str, traits: Iterable[str], generation: int | None = None) -> int:
        return await self.ledger.execute(SetTraits(provider, frozenset(traits), generation, add_custom=True))

    async def set_aggregates(
        self, provider: str, aggregates: Iterable[str], generation: int | None = None
    ) -> int:
        return await self.ledger.execute(SetAggregates(provider, frozenset(aggregates), generation))

    async def ensure_resource_class(self, name: str) -> None:
        await self.ledger.execute(AddResourceClass(name))

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None:
        await self.ledger.execute(WriteAllocations(tuple(writes)))

    async def reshape(self, inventories: Sequence[NewInventories], writes: Sequence[ConsumerWrite]) -> None:
        await self.ledger.execute(Reshape(tuple(inventories), tuple(writes)))

    async def delete_allocations(self, consumers: Sequence[str]) -> None:
        await self.ledger.execute(FreeConsumers(tuple(consumers)))

    async def allocations_of(self, consumer: str) -> Held | None:
        return (await self.holdings((consumer,))).get(consumer)

    async def holdings(self, consumers: Collection[str]) -> dict[str, Held]:
        few = len(consumers) <= NAMES_PER_STATEMENT
        return await self.ledger.database.read(lambda connection: held_by(connection, consumers), by_key=few)

    async def consumers_on(self, provider: str) -> frozenset[str]:
        provider_row(await self.ledger.current(), provider)
        return await self.ledger.database.read(lambda connection: consumers_on(connection, provider))

    async def announce_word(self, mark: int) -> None:
        await self.ledger.execute(AnnounceWord(mark))

    async def group_members(self, group: str) -> dict[str, list[str]]:
        fleet = await self.ledger.current()
        members = fleet.groups.members(group)
        return {consumer: [fleet.uuid(row) for row in hosts] for consumer, hosts in sorted(members.items())}


def _provider(fleet: Fleet, row: int) -> Provider:
    facts = fleet.facts(row)
    return Provider(
        uuid=fleet.uuid(row),
        name=facts.name,
        generation=facts.generation,
        parent=facts.parent,
        root=fleet.uuid(fleet.root.item(row)),
    )

"""Brings placement in line with a provider tree: only what differs is written."""

from roost.compute.errors import BadProviderName
from roost.compute.placement import ReportPlacement
from roost.compute.provider_tree import ProviderData, ProviderTree
from roost.model.text import is_storable
from roost.model.vocabulary import MAX_NAME


async def report(tree: ProviderTree, placement: ReportPlacement) -> None:
    """Create, change and delete providers until placement has the tree as it is here.

    Parents first; what placement has beyond the tree goes last, children first. Not atomic: a report that
    was cut short is completed by the next one. Aggregates are only added. Raises placement's refusals, and
    `BadProviderName` before anything is sent.
    """
    for provider in tree:
        _check(provider)
    for provider in tree:
        await placement.ensure_provider(provider.uuid, provider.name, provider.parent)
        await _report_provider(provider, placement)
    wanted = {provider.uuid for provider in tree}
    surplus = {
        provider.uuid: provider.parent
        for provider in await placement.tree(tree.root.uuid)
        if provider.uuid not in wanted
    }
    while surplus:
        leaves = [uuid for uuid in surplus if uuid not in surplus.values()]
        for uuid in leaves:
            await placement.delete_provider(uuid)
            del surplus[uuid]


def _check(provider: ProviderData) -> None:
    for text in (provider.name, *provider.aggregates):
        if not is_storable(text, MAX_NAME):
            raise BadProviderName(f"a provider cannot be named or be in the aggregate {text!r}")


async def _report_provider(provider: ProviderData, placement: ReportPlacement) -> None:
    if await placement.inventories(provider.uuid) != provider.inventory:
        for name in provider.inventory:
            if name.startswith("CUSTOM_"):
                await placement.ensure_resource_class(name)
        await placement.set_inventories(provider.uuid, provider.inventory)
    if await placement.traits(provider.uuid) != provider.traits:
        await placement.set_traits(provider.uuid, provider.traits)
    # Others put providers into aggregates as well, such as the mirror of host aggregates.
    present = await placement.aggregates(provider.uuid)
    if not provider.aggregates <= present:
        await placement.set_aggregates(provider.uuid, present | provider.aggregates)

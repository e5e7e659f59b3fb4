"""Removes the providers of a host's node from placement, except those that others made."""

from collections.abc import Collection

from roost.placement.errors import HasChildren, NotFound, ProviderInUse
from roost.placement.interface import Placement, Provider
from roost.state.api_database.host_errors import HostInUse


async def remove_providers(placement: Placement, root: str, made: Collection[str]) -> list[Provider]:
    """Delete the providers of a tree that agents have ``made``, children first.

    Returns the providers that stay: those that others made, and all their ancestors.

    Raises:
        HostInUse: instances have claims there; providers that were deleted before stay deleted.
    """
    tree = {provider.uuid: provider for provider in await placement.tree(root)}
    if root in tree and tree[root].root != root:
        # The provider is in another tree now, which is not the node's.
        return [tree[root]]
    staying: list[Provider] = []
    kept: set[str] = set()
    for provider in sorted(tree.values(), key=lambda each: _depth(tree, each), reverse=True):
        if provider.uuid not in made or provider.uuid in kept:
            staying.append(provider)
            kept.add(provider.parent or "")
            continue
        try:
            await placement.delete_provider(provider.uuid)
        except NotFound:
            continue
        except HasChildren:
            # Another client has made a child meanwhile.
            staying.append(provider)
            kept.add(provider.parent or "")
        except ProviderInUse as error:
            raise HostInUse(
                f"provider {provider.uuid} ({provider.name}) has allocations in placement: delete its "
                "instances, or wait until their claims are freed"
            ) from error
    return staying


def _depth(tree: dict[str, Provider], provider: Provider) -> int:
    depth, parent = 0, provider.parent
    while parent is not None and parent in tree:
        depth, parent = depth + 1, tree[parent].parent
    return depth

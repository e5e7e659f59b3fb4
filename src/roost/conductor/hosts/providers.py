"""Removes the providers of a host's node from placement, and nothing that others made."""

from collections.abc import Collection

from roost.placement.errors import HasChildren, NotFound, ProviderInUse
from roost.placement.interface import Placement, Provider
from roost.state.api_database.host_errors import HostInUse


async def remove_providers(placement: Placement, root: str, made: Collection[str]) -> list[Provider]:
    """Delete those providers of a tree that agents have ``made``, children first.

    Returns the providers that stay: those of others, and all above them.

    Raises:
        HostInUse: instances have claims there; what was deleted before stays deleted.
    """
    tree = {provider.uuid: provider for provider in await placement.tree(root)}
    if root in tree and tree[root].root != root:
        # Another tree has it now; that is not the node's any more.
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
            # Somebody has made one meanwhile.
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

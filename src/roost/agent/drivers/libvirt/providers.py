"""The provider tree of a host: the root, its mediated-device sources, its memory encryption."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from roost.agent.drivers.libvirt.domain_capabilities import SEV, SEV_ES, MemoryEncryption
from roost.agent.drivers.libvirt.inventory import ENCRYPTION, MdevSource
from roost.agent.provider_tree import ProviderTree
from roost.model.inventory import Inventory

ENCRYPTIONS: Final = {SEV: ("amd_sev", "HW_CPU_X86_AMD_SEV"), SEV_ES: ("amd_sev_es", "HW_CPU_X86_AMD_SEV_ES")}
"""The suffix of the provider of each kind of memory encryption, and its trait."""


class ChildProvider(msgspec.Struct, frozen=True):
    """A provider below the root, named by the node and ``_suffix``."""

    suffix: str
    inventory: dict[str, Inventory]
    traits: frozenset[str] = frozenset()


def mdev_provider(source: MdevSource) -> ChildProvider:
    """Return the provider of a physical device, as Nova's libvirt driver names and fills it.

    The type of its mediated devices is a custom trait.
    """
    trait = "CUSTOM_" + re.sub("[^A-Z0-9]", "_", source.type.upper())
    inventory = {source.resource_class: Inventory(source.total, max_unit=source.total)}
    return ChildProvider(source.device, inventory, frozenset({trait}))


def encryption_providers(encryption: MemoryEncryption | None) -> list[ChildProvider]:
    """Return a provider for each kind of memory encryption of a host's CPU."""
    if encryption is None:
        return []
    return [
        ChildProvider(
            ENCRYPTIONS[kind][0],
            {ENCRYPTION: Inventory(most, max_unit=1)},
            frozenset({ENCRYPTIONS[kind][1]}),
        )
        for kind, most in encryption.most_guests.items()
    ]


def fill(
    tree: ProviderTree,
    node: str,
    inventory: Mapping[str, Inventory],
    traits: frozenset[str],
    children: list[ChildProvider],
) -> None:
    """Change the tree of a node to its host's providers; providers of devices that are gone are removed."""
    tree.update_inventory(node, inventory)
    tree.update_traits(node, traits)
    wanted = {f"{node}_{child.suffix}" for child in children}
    for uuid in tree.get_provider_uuids(node):
        name = tree.data(uuid).name if uuid in tree else ""
        if name not in wanted and _is_ours(node, name):
            tree.remove(uuid)
    for child in children:
        name = f"{node}_{child.suffix}"
        tree.put_child(name, node)
        tree.update_inventory(name, child.inventory)
        tree.update_traits(name, child.traits)


def there(tree: ProviderTree, node: str) -> dict[str, dict[str, Any]]:
    """Return the inventory that placement has of a node."""
    return tree.data(node).inventory


def _is_ours(node: str, name: str) -> bool:
    suffix = name.removeprefix(f"{node}_")
    return suffix != name and (
        suffix.startswith("pci_") or suffix in {suffix for suffix, _ in ENCRYPTIONS.values()}
    )

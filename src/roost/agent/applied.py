"""What an agent last applied of its node's providers, so that it knows what is its own."""

import msgspec

from roost.model.inventory import Inventory


class AppliedProvider(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent has made of one provider.

    ``made``: it created the provider. ``classes``, ``traits`` and ``aggregates`` are those that it added.
    ``inventories`` are the inventories that its driver last told, also of classes that others have added.
    """

    made: bool = False
    inventories: dict[str, Inventory] = {}
    classes: frozenset[str] = frozenset()
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


Applied = dict[str, AppliedProvider]
"""What an agent has applied, by the uuid of the provider."""

NOTHING = AppliedProvider()

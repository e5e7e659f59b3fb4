"""Providers and their parts that an agent itself has written to placement, so that it knows its own."""

import msgspec

from roost.model.inventory import Inventory


class AppliedProvider(msgspec.Struct, frozen=True, omit_defaults=True):
    """The agent's own part of one provider.

    ``made``: the agent created it. ``classes``, ``traits`` and ``aggregates``: the ones that it added.
    ``inventories``: the last inventories that its driver reported, also of classes that others have added.
    """

    made: bool = False
    inventories: dict[str, Inventory] = {}
    classes: frozenset[str] = frozenset()
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


Applied = dict[str, AppliedProvider]
"""The agent's own part of each provider, by the provider's uuid."""

NOTHING = AppliedProvider()

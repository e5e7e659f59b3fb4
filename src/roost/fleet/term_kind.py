"""Terms with equal demands, evaluated for one provider: it could serve them or not.

`roost.fleet.query_terms` decides the same for all providers at once.
"""

from collections.abc import Set
from typing import NamedTuple

from roost.fleet.fleet import Fleet
from roost.fleet.match import tree_root
from roost.model.request import RequestGroup


class TermKind(NamedTuple):
    """The terms of a query with equal demands. ``conditional``: the group has conditions beside amounts."""

    number: int
    group: RequestGroup
    resources: tuple[tuple[str, int], ...]
    conditional: bool

    def serves(self, fleet: Fleet, row: int) -> bool:
        """Return whether a provider could serve a term, by itself and in its own tree."""
        for name, amount in self.resources:
            columns = fleet.inventory_columns(name)
            slot = columns.slot(row)
            if slot < 0 or not columns.fits_at(slot, amount):
                return False
        return not self.conditional or self.meets(fleet, row)

    def meets(self, fleet: Fleet, row: int) -> bool:
        """Return whether a provider meets the group's conditions, except amounts and joint traits."""
        group = self.group
        if group.granular and not all(has_trait(fleet, names, row) for names in group.required):
            return False
        if has_trait(fleet, group.forbidden, row):
            return False
        root = fleet.root.item(row)
        if not all(is_in_aggregate(fleet, names, row) for names in group.member_of) and (
            group.granular or not all(is_in_aggregate(fleet, names, root) for names in group.member_of)
        ):
            return False
        if is_in_aggregate(fleet, group.forbidden_aggregates, row):
            return False
        if not group.granular and is_in_aggregate(fleet, group.forbidden_aggregates, root):
            return False
        return group.in_tree is None or root == tree_root(fleet, group.in_tree)

    def serves_others(self, fleet: Fleet, row: int) -> bool:
        """Return whether a pool that could serve a term could serve it for other trees.

        Source: the behaviour of upstream at microversion 1.39; see `roost.fleet.query_terms`.
        """
        group = self.group
        return group.granular or (
            group.in_tree is None and all(is_in_aggregate(fleet, names, row) for names in group.member_of)
        )


def is_conditional(group: RequestGroup) -> bool:
    """Return whether a group has conditions that each provider must meet, beside amounts."""
    return bool(
        (group.granular and group.required)
        or group.forbidden
        or group.member_of
        or group.forbidden_aggregates
        or group.in_tree is not None
    )


# A provider holds few names, and a query may name hundreds: the look is at what is held.


def has_trait(fleet: Fleet, names: Set[str], row: int) -> bool:
    """Return whether a provider has at least one of some traits."""
    return not names.isdisjoint(fleet.traits_of(row))


def is_in_aggregate(fleet: Fleet, names: Set[str], row: int) -> bool:
    """Return whether a provider is in at least one of some aggregates."""
    return not names.isdisjoint(fleet.aggregates_of(row))

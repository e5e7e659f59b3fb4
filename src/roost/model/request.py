"""Request groups and the allocation candidate query that they make up."""

import msgspec

from roost.model.allocation import Resources


class RequestGroup(msgspec.Struct, frozen=True):
    """One request group of an allocation candidate query.

    ``required``: traits in conjunctive normal form, a provider needs one trait of every set.
    ``member_of``: aggregates, likewise. ``in_tree``: uuid of any provider of the only tree allowed.
    Several providers of one tree, and the providers that share with it, may serve the unsuffixed group
    (``suffix == ""``) together; one provider must serve a granular group.
    Source: microversions 1.25 (granular groups), 1.31 (``in_tree``), 1.32 (forbidden aggregates),
    1.33 (free-form suffixes), 1.39 (any-traits).
    """

    resources: Resources = {}
    suffix: str = ""
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    forbidden_aggregates: frozenset[str] = frozenset()
    in_tree: str | None = None

    @property
    def granular(self) -> bool:
        """True if one provider must serve the whole group, as for every group with a suffix."""
        return self.suffix != ""


SPLITTABLE = ("VCPU", "PCPU", "MEMORY_MB")
"""The resource classes that `CandidateQuery.can_split` may name. A device is never split."""


class CandidateQuery(msgspec.Struct, frozen=True):
    """The query of ``GET /allocation_candidates``: request groups and the constraints that join them.

    ``isolate`` is ``group_policy=isolate``: no two granular groups share a provider. ``same_subtree``: each
    set holds suffixes; one of the providers that serve these groups must be the ancestor of all of them.
    ``root_required`` and ``root_forbidden`` are traits of the tree's root.
    Source: microversions 1.25 (``group_policy``), 1.35 (``root_required``), 1.36 (``same_subtree``).

    Two constraints are not part of the Placement API. ``isolated`` holds suffixes: no two of these groups
    share a provider, while others may. ``can_split``: the resource classes of the unsuffixed group, out of
    `SPLITTABLE`, that several providers of one tree may give together where no single one can; see
    `roost.fleet.splitting`.
    """

    groups: tuple[RequestGroup, ...]
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    isolated: frozenset[str] = frozenset()
    can_split: tuple[str, ...] = ()

    @property
    def split(self) -> Resources:
        """The amounts that may be split, by class: those in ``can_split`` that no granular group requests."""
        if not self.can_split:
            return {}
        elsewhere = {name for group in self.groups if group.granular for name in group.resources}
        return {
            name: amount
            for group in self.groups
            if not group.granular
            for name, amount in group.resources.items()
            if name in self.can_split and name not in elsewhere
        }

    def isolates(self, group: RequestGroup) -> bool:
        """Return whether a group shares no provider with the other isolated groups."""
        return group.granular and (self.isolate or group.suffix in self.isolated)

    @property
    def resources(self) -> Resources:
        """The amount of each resource class, summed over all groups."""
        total: Resources = {}
        for group in self.groups:
            for resource_class, amount in group.resources.items():
                total[resource_class] = total.get(resource_class, 0) + amount
        return total


def all_of(*names: str) -> tuple[frozenset[str], ...]:
    """Return the value of ``required`` or ``member_of`` that demands all of ``names``."""
    return tuple(frozenset((name,)) for name in names)

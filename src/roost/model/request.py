"""What is asked of placement: request groups and the query that holds them."""

import msgspec

from roost.model.allocation import Resources


class RequestGroup(msgspec.Struct, frozen=True):
    """One request group.

    ``required``: each set is an any-of, all sets must be met (a plain required trait is a set of one).
    ``member_of``: the same, over aggregates. ``in_tree``: uuid of any provider of the tree asked for.
    The unsuffixed group (``suffix == ""``) may be spread over a tree and its sharing providers; a
    granular group is served by one provider.
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
        """Whether one provider must serve the whole group."""
        return self.suffix != ""


class CandidateQuery(msgspec.Struct, frozen=True):
    """A whole ``GET /allocation_candidates``: its groups and what binds them together.

    ``isolate`` is ``group_policy=isolate``; each set in ``same_subtree`` names suffixes whose providers
    must have one of them as common ancestor; ``root_required`` and ``root_forbidden`` are traits of the
    root of the tree.
    """

    groups: tuple[RequestGroup, ...]
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()

    @property
    def resources(self) -> Resources:
        """Amount of each class over all groups."""
        total: Resources = {}
        for group in self.groups:
            for resource_class, amount in group.resources.items():
                total[resource_class] = total.get(resource_class, 0) + amount
        return total


def all_of(*names: str) -> tuple[frozenset[str], ...]:
    """The ``required`` or ``member_of`` form of "all of these names"."""
    return tuple(frozenset((name,)) for name in names)

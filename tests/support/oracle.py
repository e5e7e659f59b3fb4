"""A slow and simple implementation of Placement's allocation candidates at microversion 1.39.

It shares only the model's types with the code under test: it has dicts, loops and `itertools.product`.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product

from roost.model.allocation import Candidate
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup

SHARING = "MISC_SHARES_VIA_AGGREGATE"

Answer = tuple[frozenset[tuple[str, str, int]], frozenset[tuple[str, frozenset[str]]]]
"""A comparable candidate: the (provider, class, amount)s, and the providers of each group."""


@dataclass
class Provider:
    """A provider of a `World`. ``parent`` is a uuid, or None for a root."""

    parent: str | None = None
    inventories: dict[str, Inventory] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


World = dict[str, Provider]
"""The providers by uuid, parents before children."""


def answer(candidate: Candidate) -> Answer:
    """Return the comparable form of a candidate of the code under test."""
    for providers in candidate.mappings.values():
        assert len(set(providers)) == len(providers), "a provider is named twice for one group"
    return (
        frozenset((p, c, n) for p, held in candidate.allocations.items() for c, n in held.items()),
        frozenset((suffix, frozenset(providers)) for suffix, providers in candidate.mappings.items()),
    )


def lineage(world: World, uuid: str) -> list[str]:
    """Return a provider and its ancestors, the root last."""
    found = [uuid]
    while (parent := world[found[-1]].parent) is not None:
        found.append(parent)
    return found


def root_of(world: World, uuid: str) -> str:
    return lineage(world, uuid)[-1]


def fits(provider: Provider, resource_class: str, amount: int) -> bool:
    """Return whether ``amount`` more of a class may be allocated from a provider."""
    inventory = provider.inventories.get(resource_class)
    if inventory is None:
        return False
    capacity = int((inventory.total - inventory.reserved) * inventory.allocation_ratio)
    return (
        provider.used.get(resource_class, 0) + amount <= capacity
        and inventory.min_unit <= amount <= inventory.max_unit
        and amount % inventory.step_size == 0
    )


def has_traits(traits: frozenset[str], group: RequestGroup) -> bool:
    return all(traits & any_of for any_of in group.required)


def in_aggregates(aggregates: frozenset[str], group: RequestGroup) -> bool:
    return all(aggregates & any_of for any_of in group.member_of)


def in_tree(world: World, uuid: str, group: RequestGroup) -> bool:
    if group.in_tree is None:
        return True
    return group.in_tree in world and root_of(world, uuid) == root_of(world, group.in_tree)


def serves_alone(world: World, uuid: str, group: RequestGroup) -> bool:
    """Return whether a provider can serve a whole group with its own traits and aggregates."""
    provider = world[uuid]
    return (
        all(fits(provider, name, amount) for name, amount in group.resources.items())
        and has_traits(provider.traits, group)
        and not provider.traits & group.forbidden
        and in_aggregates(provider.aggregates, group)
        and not provider.aggregates & group.forbidden_aggregates
        and in_tree(world, uuid, group)
    )


def shares_with(world: World, uuid: str, anchor: str) -> bool:
    """Return whether a sharing provider has an aggregate of any provider of the tree of ``anchor``."""
    return SHARING in world[uuid].traits and any(
        other.aggregates & world[uuid].aggregates
        for name, other in world.items()
        if root_of(world, name) == anchor
    )


def reaches(world: World, uuid: str, anchor: str) -> bool:
    return root_of(world, uuid) == anchor or shares_with(world, uuid, anchor)


def serves_class(world: World, uuid: str, anchor: str, group: RequestGroup, resource_class: str) -> bool:
    """Return whether a provider can serve one class of the unsuffixed group in the tree of ``anchor``.

    Required traits do not count here: the providers of the group have them together.
    """
    provider = world[uuid]
    at_home = root_of(world, uuid) == anchor
    return (
        fits(provider, resource_class, group.resources[resource_class])
        and not provider.traits & group.forbidden
        and (
            in_aggregates(provider.aggregates, group)
            or (at_home and in_aggregates(world[anchor].aggregates, group))
        )
        and not provider.aggregates & group.forbidden_aggregates
        and not world[root_of(world, uuid)].aggregates & group.forbidden_aggregates
        and not world[anchor].aggregates & group.forbidden_aggregates
        and in_tree(world, uuid, group)
        and (at_home or (group.in_tree is None and shares_with(world, uuid, anchor)))
    )


def candidates_at(world: World, query: CandidateQuery, anchor: str) -> set[Answer]:
    """Return all unsplit candidates of one tree."""
    return assignments_at(world, query, anchor, [])


def splits_at(world: World, query: CandidateQuery, anchor: str) -> set[Answer]:
    """Return the split of one tree with each assignment of the rest; nothing if it is served unsplit."""
    if candidates_at(world, query, anchor):
        return set()
    [unsuffixed] = [group for group in query.groups if not group.granular]
    elsewhere = {name for group in query.groups if group.granular for name in group.resources}
    parts: list[tuple[str, str, int]] = []
    for name in query.can_split:
        if name in elsewhere or name not in unsuffixed.resources:
            continue
        found = parts_of(world, unsuffixed, anchor, name)
        if found is None:
            return set()
        parts += [(uuid, name, amount) for uuid, amount in found]
    return assignments_at(world, query, anchor, parts) if parts else set()


def parts_of(world: World, group: RequestGroup, anchor: str, name: str) -> list[tuple[str, int]] | None:
    """Return what each provider of a tree gives of a class that can be split; None if that is too little."""
    able = []
    for uuid, provider in world.items():
        inventory = provider.inventories.get(name)
        at_home = root_of(world, uuid) == anchor
        if inventory is None or not at_home or not meets(world, uuid, anchor, group):
            continue
        capacity = int((inventory.total - inventory.reserved) * inventory.allocation_ratio)
        able.append((capacity - provider.used.get(name, 0), uuid))
    able.sort(key=lambda each: (-each[0], each[1]))
    amount = group.resources[name]
    for _, uuid in able:
        if fits(world[uuid], name, amount):
            return [(uuid, amount)]
    parts = []
    for _, uuid in able:
        fitting = [n for n in range(1, amount + 1) if fits(world[uuid], name, n)]
        if fitting:
            parts.append((uuid, max(fitting)))
            amount -= max(fitting)
        if not amount:
            return parts
    return None


def meets(world: World, uuid: str, anchor: str, group: RequestGroup) -> bool:
    """Return whether a provider of a tree meets what the unsuffixed group demands beside amounts."""
    provider = world[uuid]
    return (
        not provider.traits & group.forbidden
        and (in_aggregates(provider.aggregates, group) or in_aggregates(world[anchor].aggregates, group))
        and not provider.aggregates & group.forbidden_aggregates
        and not world[anchor].aggregates & group.forbidden_aggregates
        and in_tree(world, uuid, group)
    )


def assignments_at(
    world: World, query: CandidateQuery, anchor: str, parts: list[tuple[str, str, int]]
) -> set[Answer]:
    """Return all candidates of one tree in which the unsuffixed group has these parts."""
    traits = world[anchor].traits
    if query.root_required - traits or query.root_forbidden & traits:
        return set()
    split = {name for _, name, _ in parts}
    slots: list[tuple[RequestGroup, dict[str, int], list[str]]] = []
    for group in query.groups:
        if group.granular:
            able = [p for p in world if serves_alone(world, p, group) and reaches(world, p, anchor)]
            slots.append((group, group.resources, able))
        else:
            for name, amount in group.resources.items():
                able = [
                    p
                    for p in world
                    if reaches(world, p, anchor) and serves_class(world, p, anchor, group, name)
                ]
                if name not in split:
                    slots.append((group, {name: amount}, able))
    found = set()
    for chosen in product(*(able for _, _, able in slots)):
        served: dict[str, set[str]] = defaultdict(set)
        amounts: dict[tuple[str, str], int] = defaultdict(int)
        for uuid, name, amount in parts:
            served[""].add(uuid)
            amounts[uuid, name] += amount
        for (group, resources, _), uuid in zip(slots, chosen, strict=True):
            served[group.suffix].add(uuid)
            for name, amount in resources.items():
                amounts[uuid, name] += amount
        if allowed(world, query, served, amounts):
            found.add(
                (
                    frozenset((uuid, name, n) for (uuid, name), n in amounts.items()),
                    frozenset((suffix, frozenset(providers)) for suffix, providers in served.items()),
                )
            )
    return found


def allowed(
    world: World, query: CandidateQuery, served: dict[str, set[str]], amounts: dict[tuple[str, str], int]
) -> bool:
    """Return whether a combination keeps the rules for several providers or groups."""
    for group in query.groups:
        if not group.granular:
            together = frozenset[str]().union(*(world[uuid].traits for uuid in served[group.suffix]))
            if not has_traits(together, group):
                return False
    granular = [uuid for suffix, providers in served.items() if suffix for uuid in providers]
    if query.isolate and len(set(granular)) < len(granular):
        return False
    isolated = [uuid for suffix in query.isolated for uuid in served[suffix]]
    if len(set(isolated)) < len(isolated):
        return False
    for subtree in query.same_subtree:
        providers = set[str]().union(*(served[suffix] for suffix in subtree))
        if not any(all(top in lineage(world, uuid) for uuid in providers) for top in providers):
            return False
    return all(fits(world[uuid], name, amount) for (uuid, name), amount in amounts.items())


def candidates(world: World, query: CandidateQuery) -> dict[str, set[Answer]]:
    """Return all candidates by the root of their tree; roots without any are left out."""
    roots = [uuid for uuid, provider in world.items() if provider.parent is None]
    found = {root: candidates_at(world, query, root) for root in roots}
    return {root: answers for root, answers in found.items() if answers}


def tree_totals(world: World, resource_class: str, root: str) -> tuple[int, int]:
    """Return the capacity and use of a class in one tree."""
    capacity = used = 0
    for uuid, provider in world.items():
        if root_of(world, uuid) == root:
            inventory = provider.inventories.get(resource_class)
            if inventory is not None:
                capacity += int((inventory.total - inventory.reserved) * inventory.allocation_ratio)
            used += provider.used.get(resource_class, 0)
    return capacity, used

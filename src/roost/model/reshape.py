"""Rules of a reshape, and an instance's selection after it.

A reshape moves allocations from one provider of a tree to another one of the same tree while the instances
run. The amounts that each consumer holds stay the same.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping

import msgspec

from roost.model.allocation import Allocations
from roost.model.spec import Selection

_ONE_CLASS = {"PCPU": "VCPU"}
"""Classes that count as another one: a reshape may turn shared CPUs into dedicated ones, and back."""


def counted_class(name: str) -> str:
    """Return the class that a class counts as in a reshape: ``VCPU`` for ``PCPU``, else itself."""
    return _ONE_CLASS.get(name, name)


def totals(allocations: Allocations) -> dict[str, int]:
    """Return the amount of each class over all providers. ``PCPU`` counts as ``VCPU``."""
    found: defaultdict[str, int] = defaultdict(int)
    for resources in allocations.values():
        for name, amount in resources.items():
            found[counted_class(name)] += amount
    return dict(found)


def why_not(before: Allocations, after: Allocations, tree: Collection[str]) -> str | None:
    """Return why a reshape of a tree may not change a consumer's allocations to ``after``; None if it may.

    ``tree``: the uuids of the tree's providers. Allocations from other trees must stay as they are.
    """
    outside = ({p: each for p, each in some.items() if p not in tree} for some in (before, after))
    if next(outside) != next(outside):
        return "what it holds of other trees would change"
    was, becomes = totals(before), totals(after)
    if was != becomes:
        return f"it holds {_amounts(was)} before and {_amounts(becomes)} after"
    return None


def followed(selection: Selection, allocations: Allocations, generation: int) -> Selection:
    """Return the selection of an instance after a reshape has changed its claim to these allocations."""
    return msgspec.structs.replace(
        selection,
        allocations=allocations,
        mappings=moved_mappings(selection.mappings, selection.allocations, allocations),
        generation=generation,
    )


def moved_mappings(
    mappings: Mapping[str, list[str]], before: Allocations, after: Allocations
) -> dict[str, list[str]]:
    """Return the providers that serve each request group after a reshape, by suffix.

    A group follows the amounts of its provider. If one provider served several groups, each of them is served
    by all providers that took over from it: it is not known which provider has the amounts of which group.
    """
    moved = _moves(before, after)
    return {
        suffix: list(
            dict.fromkeys(
                there
                for provider in providers
                for there in (
                    *((provider,) if provider in after or provider not in before else ()),
                    *moved.get(provider, ()),
                )
            )
        )
        for suffix, providers in mappings.items()
    }


def _moves(before: Allocations, after: Allocations) -> dict[str, list[str]]:
    """Return the providers that took over from each provider: they gained units of a class that it lost."""
    lost: defaultdict[str, list[str]] = defaultdict(list)
    gained: defaultdict[str, list[str]] = defaultdict(list)
    for provider in dict.fromkeys((*before, *after)):
        was, becomes = (totals({provider: each.get(provider, {})}) for each in (before, after))
        for name in dict.fromkeys((*was, *becomes)):
            change = becomes.get(name, 0) - was.get(name, 0)
            if change:
                (gained if change > 0 else lost)[name].append(provider)
    moved: defaultdict[str, list[str]] = defaultdict(list)
    for name, providers in lost.items():
        for provider in providers:
            moved[provider] += gained[name]
    return dict(moved)


def _amounts(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in sorted(amounts.items())) or "nothing"

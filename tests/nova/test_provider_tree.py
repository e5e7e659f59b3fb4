"""Provider trees against Nova's ``ProviderTree``: the same answers and states after the same operations."""

import copy
from random import Random
from typing import Any

import pytest

from roost.agent.provider_tree import ProviderTree
from support.nova import Nova
from support.seeds import nightly_seed

LENGTH = 50
"""Operations of a sequence."""

ROOTS = ("r0", "r1")
NAMES = (*ROOTS, "c0", "c1", "c2")
UUIDS = {f"u-{name}": name for name in NAMES}
"""The uuids that tests give, and the name of each provider of one that is put in. Two providers may have one
name, but no two roots: Nova fails with a KeyError when it removes one of those."""

TRAITS = ("CUSTOM_A", "CUSTOM_B", "MISC_SHARES_VIA_AGGREGATE")
AGGREGATES = ("agg-a", "agg-b")
CLASSES = ("VCPU", "DISK_GB")


class Drawn:
    """Operations that a seed draws."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def operations(self) -> list[Any]:
        first: list[Any] = [[0, "new_root", ["r0", "u-r0", 0]], [0, "new_child", ["c0", "r0"]]]
        return [*first, *(self._operation() for _ in range(LENGTH))]

    def _operation(self) -> list[Any]:
        method = self._random.choice((*ARGUMENTS, "new_child", "new_child", "update_inventory"))
        arguments = [getattr(self, f"_{kind}")() for kind in ARGUMENTS[method].split()]
        if method == "new_root":
            arguments[:0] = [(name := self._random.choice(ROOTS)), f"u-{name}"]
        elif method in SEVERAL:
            arguments[1:] = arguments[1]
        return [self._random.choice((0, 0, 0, 1, 2)), method, arguments]

    def _name(self) -> str:
        return self._random.choice(NAMES)

    def _named(self) -> str:
        return self._random.choice((*["r0", "c0"] * 4, *NAMES, *UUIDS, "nobody"))

    def _named_or_none(self) -> str | None:
        return self._random.choice((None, self._named()))

    def _uuid(self) -> str | None:
        return self._random.choice((None, *UUIDS))

    def _generation(self) -> int | None:
        return self._random.choice((None, 0, 1, 2, 3))

    def _class(self) -> str:
        return self._random.choice(CLASSES)

    def _traits(self) -> list[str]:
        return self._some(TRAITS)

    def _aggregates(self) -> list[str]:
        return self._some(AGGREGATES)

    def _inventory(self) -> dict[str, dict[str, float]]:
        return {name: self._record() for name in self._some((*CLASSES, "VCPU"))}

    def _record(self) -> dict[str, float]:
        optional = dict.fromkeys(self._some(("reserved", "allocation_ratio")), 1.0)
        return {"total": self._random.choice((1, 1, 2)), **optional}

    def _resources(self) -> dict[str, list[str]]:
        return {name: self._some("xy") for name in self._some(CLASSES)}

    def _providers(self) -> list[dict[str, Any]]:
        """Providers in any order, none of which is above itself: Nova adds some before it refuses those."""
        order = self._random.sample(sorted(UUIDS), len(UUIDS))
        return [
            {
                "uuid": uuid,
                "name": UUIDS[uuid],
                "generation": self._generation(),
                "parent_provider_uuid": self._random.choice((None, *order[: order.index(uuid)])),
            }
            for uuid in self._random.sample(order, self._random.randint(0, len(order)))
        ]

    def _some(self, things: Any) -> list[Any]:
        return sorted({thing for thing in things if self._random.random() < 0.4})


SEVERAL = {
    "add_traits": "named traits",
    "remove_traits": "named traits",
    "add_aggregates": "named aggregates",
    "remove_aggregates": "named aggregates",
}
"""The methods that take a provider and any number of names."""

ARGUMENTS = {
    "new_root": "generation",
    "new_child": "name named uuid generation",
    "populate_from_iterable": "providers",
    "exists": "named",
    "remove": "named",
    "data": "named",
    "get_provider_uuids": "named_or_none",
    "get_provider_uuids_in_tree": "named",
    "has_inventory": "named",
    "has_inventory_changed": "named inventory",
    "update_inventory": "named inventory generation",
    "has_sharing_provider": "class",
    "has_traits": "named traits",
    "have_traits_changed": "named traits",
    "update_traits": "named traits generation",
    "in_aggregates": "named aggregates",
    "have_aggregates_changed": "named aggregates",
    "update_aggregates": "named aggregates generation",
    "update_resources": "named resources",
    "subtree": "named",
    "copy": "",
    **SEVERAL,
}
"""The methods of both, and what kinds of arguments they take."""


def play(asked: list[Any]) -> tuple[list[Any], list[Any]]:
    """What `play` of tests/nova/upstream/trees.py does, with our trees."""
    trees = [ProviderTree()]
    outcomes: list[Any] = []
    for which, method, arguments in asked:
        tree, outcome = trees[which % len(trees)], None
        try:
            if method == "copy":
                trees.append(copy.deepcopy(tree))
            elif method == "subtree":
                trees.append(tree.subtree(*arguments))
            else:
                outcome = getattr(tree, method)(*arguments)
                outcome = _plain(outcome) if method == "data" else outcome
        except ValueError:
            outcome = "ValueError"
        outcomes.append(outcome)
    return outcomes, [[_plain(tree.data(uuid)) for uuid in tree.get_provider_uuids()] for tree in trees]


def _plain(data: Any) -> list[Any]:
    things = {name: sorted(each) for name, each in data.resources.items()}
    return [*data[:5], sorted(data.traits), sorted(data.aggregates), things]


def alike(asked: list[Any], played: Any) -> Any:
    """Outcomes and states without the uuids that were made up, which differ."""
    outcomes, states = played
    shown = []
    for (_, method, _), outcome in zip(asked, outcomes, strict=True):
        if method == "data" and not isinstance(outcome, str):
            outcome = _known(outcome[0]), *outcome[1:3], outcome[3] and _known(outcome[3]), *outcome[4:]
        elif isinstance(outcome, list):
            outcome = [_known(each) for each in outcome]
        elif method == "new_child":
            outcome = _known(outcome)
        shown.append(outcome)
    named = []
    for state in states:
        names = {row[0]: _known(row[0]) if row[0] in UUIDS else f"made {row[1]}" for row in state}
        named.append([[names[row[0]], *row[1:3], row[3] and names[row[3]], *row[4:]] for row in state])
    return shown, named


def _known(uuid: str) -> str:
    return uuid if uuid in UUIDS or uuid == "ValueError" else "made"


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_trees_are_those_of_nova(nova: Nova, count: int) -> None:
    for seed in range(nightly_seed(), nightly_seed() + count):
        asked = Drawn(seed).operations()
        theirs = alike(asked, nova.ask("trees", "play", operations=asked))
        assert alike(asked, play(asked)) == theirs, f"seed {seed}"


def test_every_method_of_novas_tree_is_compared(nova: Nova) -> None:
    assert set(nova.ask("trees", "methods")) == ARGUMENTS.keys() - {"copy"}

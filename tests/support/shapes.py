"""Fleets and queries that are hostile to a search: trees wide and deep, many groups, pools that serve all."""

from hypothesis import strategies as st

from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup
from support.oracle import SHARING, Provider, World

FIRST, SECOND = "CUSTOM_FIRST", "CUSTOM_SECOND"


def wide(children: int, amount: int = 4) -> World:
    """A root with children that have both classes."""
    has = {FIRST: Inventory(amount), SECOND: Inventory(amount)}
    return {"root": Provider(None, {"VCPU": Inventory(8)})} | {
        f"child{number}": Provider("root", has) for number in range(children)
    }


def deep(providers: int, every: int = 1) -> World:
    """A chain, of which each ``every``-th provider has both classes."""
    world: World = {"root": Provider(None, {"VCPU": Inventory(8)})}
    above = "root"
    for number in range(providers):
        has = {FIRST: Inventory(4), SECOND: Inventory(4)} if number % every == 0 else {}
        world[f"link{number}"] = Provider(above, has)
        above = f"link{number}"
    return world


def branched(branches: int, leaves: int) -> World:
    """A root with branches that have leaves: the first class is on branches, the second on leaves."""
    world: World = {"root": Provider(None, {"VCPU": Inventory(8)})}
    for number in range(branches):
        world[f"branch{number}"] = Provider("root", {FIRST: Inventory(4)})
        for leaf in range(leaves):
            world[f"leaf{number}-{leaf}"] = Provider(f"branch{number}", {SECOND: Inventory(4)})
    return world


def pooled(trees: int, pools: int) -> World:
    """Trees that all share the same pools."""
    world: World = {}
    for number in range(trees):
        world[f"host{number}"] = Provider(None, {"VCPU": Inventory(8)}, aggregates=frozenset({"all"}))
    for number in range(pools):
        has = {FIRST: Inventory(99), SECOND: Inventory(99)}
        world[f"pool{number}"] = Provider(None, has, {}, frozenset({SHARING}), frozenset({"all"}))
    return world


def pair(*, isolate: bool = False) -> CandidateQuery:
    """A group for each class, both in a common subtree."""
    groups = (RequestGroup({FIRST: 1}, suffix="_A"), RequestGroup({SECOND: 1}, suffix="_B"))
    return CandidateQuery(groups, isolate=isolate, same_subtree=(frozenset({"_A", "_B"}),))


@st.composite
def hostile_worlds(draw: st.DrawFn, most: int = 120) -> World:
    """Draw a fleet of one of the shapes."""
    size = draw(st.integers(1, most))
    return draw(
        st.sampled_from(
            [
                wide(size),
                wide(size, amount=1),
                deep(size),
                deep(size, every=3),
                branched(1 + size // 8, 7),
                branched(3, size // 3),
                pooled(size, 4),
                pooled(3, min(size, 20)),
            ]
        )
    )


@st.composite
def hostile_queries(draw: st.DrawFn) -> CandidateQuery:
    """Draw a query of up to eight groups."""
    number = draw(st.integers(1, 8))
    groups = tuple(
        RequestGroup({draw(st.sampled_from((FIRST, SECOND))): draw(st.integers(1, 3))}, suffix=f"_{place}")
        for place in range(number)
    )
    unsuffixed = draw(st.sampled_from([{}, {"VCPU": 1}, {FIRST: 1, SECOND: 1}]))
    if unsuffixed:
        groups = (RequestGroup(unsuffixed), *groups)
    suffixes = [group.suffix for group in groups if group.granular]
    subtrees = draw(st.lists(st.sets(st.sampled_from(suffixes), min_size=1), max_size=2))
    return CandidateQuery(
        groups,
        isolate=draw(st.booleans()),
        same_subtree=tuple(frozenset(each) for each in subtrees),
    )

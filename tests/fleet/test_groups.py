"""The members of server groups: counts by host against an oracle, through changes, undoing and forks."""

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roost.fleet import Fleet, Inconsistent
from roost.model.allocation import Allocations, Consumer
from roost.model.change import (
    AllocationsChanged,
    Change,
    GenerationChanged,
    ProviderChanged,
    ProviderFacts,
    TraitsChanged,
)
from support.fleets import snapshot

PROVIDERS = ("h0", "h1", "h0-numa", "h1-numa", "nfs")
PARENTS = {"h0": None, "h1": None, "h0-numa": "h0", "h1-numa": "h1", "nfs": None}
SHARING = ("MISC_SHARES_VIA_AGGREGATE",)
CONSUMERS = ("a", "b", "c", "d")
GROUPS = (None, "red", "blue")


def consumer(name: str, group: str | None) -> Consumer:
    return Consumer(name, "project", "user", 1, "INSTANCE", group)


def built() -> Fleet:
    fleet = Fleet()
    for row, (name, parent) in enumerate(PARENTS.items()):
        fleet.apply(ProviderChanged(name, row, None, ProviderFacts(f"name of {name}", parent, 0)))
    return fleet


def joined(name: str, group: str | None, *providers: str) -> AllocationsChanged:
    return AllocationsChanged(
        name, None, consumer(name, group), {}, {each: {"VCPU": 1} for each in providers}
    )


class Model:
    """What the fleet should say, found by looking at everything."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[Consumer, Allocations]] = {}
        self.parents: dict[str, str | None] = dict(PARENTS)
        self.sharing: set[str] = set()

    def root(self, name: str) -> str:
        above = self.parents[name]
        return name if above is None else self.root(above)

    def hosts(self, name: str) -> set[str]:
        providers = set(self.held[name][1])
        return {self.root(each) for each in (providers - self.sharing or providers)}

    def groups(self) -> dict[str, tuple[dict[str, set[str]], Counter[str]]]:
        found: dict[str, tuple[dict[str, set[str]], Counter[str]]] = {}
        for name, (owner, _) in self.held.items():
            if owner.group is not None:
                members, counts = found.setdefault(owner.group, ({}, Counter()))
                members[name] = self.hosts(name)
                counts.update(self.hosts(name))
        return found


def told(fleet: Fleet) -> dict[str, tuple[dict[str, set[str]], Counter[str]]]:
    """The groups as a fleet tells them."""
    groups = fleet.groups
    found = {}
    for name in groups.names():
        rows, counts = groups.hosts(name)
        assert rows.tolist() == sorted(rows.tolist())
        assert [groups.count(name, row) for row in rows.tolist()] == counts.tolist()
        members = {each: {fleet.uuid(row) for row in hosts} for each, hosts in groups.members(name).items()}
        assert groups.size(name) == len(members)
        by_host = Counter(
            {fleet.uuid(row): number for row, number in zip(rows.tolist(), counts.tolist(), strict=True)}
        )
        found[name] = (members, by_host)
    assert len(groups) == len(found)
    return found


class Counting(RuleBasedStateMachine):
    """Writes, moves of providers, changes of sharing: compared with the oracle, and undone at will."""

    def __init__(self) -> None:
        super().__init__()
        self.fleet = built()
        self.model = Model()
        self.done: list[tuple[Change, dict[str, object]]] = []

    def change(self, change: Change) -> None:
        before = snapshot(self.fleet)
        self.fleet.apply(change)
        self.done.append((change, before))

    @rule(
        name=st.sampled_from(CONSUMERS),
        group=st.sampled_from(GROUPS),
        providers=st.sets(st.sampled_from(PROVIDERS), max_size=3),
    )
    def write(self, name: str, group: str | None, providers: set[str]) -> None:
        owner, held = self.model.held.get(name, (None, {}))
        holds: Allocations = {each: {"VCPU": 1} for each in sorted(providers)}
        after = consumer(name, group) if holds else None
        if owner is None and after is None:
            return
        self.change(AllocationsChanged(name, owner, after, held, holds))
        if after is None:
            del self.model.held[name]
        else:
            self.model.held[name] = (after, holds)

    @rule(name=st.sampled_from(("h0-numa", "h1-numa")), parent=st.sampled_from((None, "h0", "h1")))
    def move(self, name: str, parent: str | None) -> None:
        facts = self.fleet.facts(self.fleet.row(name))
        after = ProviderFacts(facts.name, parent, facts.generation)
        self.change(ProviderChanged(name, self.fleet.row(name), facts, after))
        self.model.parents[name] = parent

    @rule(name=st.sampled_from(PROVIDERS))
    def share(self, name: str) -> None:
        before = self.fleet.traits_of(self.fleet.row(name))
        self.change(TraitsChanged(name, before, () if before else SHARING))
        self.model.sharing ^= {name}

    @precondition(lambda self: self.done)
    @rule()
    def undo(self) -> None:
        change, before = self.done[-1]
        after = snapshot(self.fleet)
        self.fleet.undo([change])
        assert snapshot(self.fleet) == before
        self.fleet.apply(change)
        assert snapshot(self.fleet) == after

    @rule()
    def fork(self) -> None:
        fork, before = self.fleet.fork(), snapshot(self.fleet)
        fork.apply(joined("other", "red", "h0"))
        assert snapshot(self.fleet) == before
        assert fork.groups.count("red", 0) == self.fleet.groups.count("red", 0) + 1

    @invariant()
    def counts_are_those_of_the_oracle(self) -> None:
        assert told(self.fleet) == self.model.groups()


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)


@pytest.mark.nightly
class TestLongCounting(Counting.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=3000, stateful_step_count=40, deadline=None)


def test_the_columns_of_a_group_are_the_same_object_until_a_member_joins_or_leaves() -> None:
    fleet = built()
    fleet.apply(joined("a", "red", "h0"))
    first = fleet.groups.hosts("red")
    fleet.apply(joined("b", "blue", "h0"))
    fleet.apply(joined("c", None, "h0"))
    fleet.apply(GenerationChanged("h0", 0, 1))
    assert fleet.groups.hosts("red") is first
    fleet.apply(joined("d", "red", "h1"))
    assert fleet.groups.hosts("red").rows.tolist() == [0, 1]


def test_a_group_without_members_has_no_hosts() -> None:
    fleet = built()
    rows, counts = fleet.groups.hosts("nobody")
    assert (len(rows), len(counts), fleet.groups.size("nobody"), "nobody" in fleet.groups) == (0, 0, 0, False)


@pytest.mark.parametrize(
    "change",
    [
        AllocationsChanged("a", consumer("a", "blue"), None, {"h0": {"VCPU": 1}}, {}),
        AllocationsChanged("b", consumer("b", "red"), None, {"h0": {"VCPU": 1}}, {}),
        AllocationsChanged("a", consumer("a", "red"), None, {"h1": {"VCPU": 1}}, {}),
        AllocationsChanged("a", None, consumer("a", "red"), {}, {"h1": {"VCPU": 1}}),
    ],
    ids=["other group", "no member", "other provider", "member already"],
)
def test_a_change_that_contradicts_the_members_is_refused_and_changes_nothing(change: Change) -> None:
    fleet = built()
    fleet.apply(joined("a", "red", "h0"))
    fleet.apply(joined("b", None, "h1"))
    before = snapshot(fleet)
    with pytest.raises(Inconsistent, match="server group"):
        fleet.apply(change)
    assert snapshot(fleet) == before

"""The usages of projects and users are the sums of what their consumers hold, after any changes."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roost.fleet.owner_usages import Owner, OwnerUsages, Usage
from roost.model.allocation import Allocations, Consumer
from roost.model.change import AllocationsChanged, inverse

PROJECTS, USERS, TYPES = ("p1", "p2", "p3"), ("u1", "u2"), ("INSTANCE", "MIGRATION", "unknown")

Held = dict[str, tuple[Consumer, Allocations]]

consumers = st.builds(
    Consumer,
    st.sampled_from([f"c{number}" for number in range(4)]),
    st.sampled_from(PROJECTS),
    st.sampled_from(USERS),
    st.just(1),
    st.sampled_from(TYPES),
)
classes = st.sampled_from(("VCPU", "DISK_GB", "CUSTOM_GPU"))
resources = st.dictionaries(classes, st.integers(1, 2**40), min_size=1)
allocations = st.dictionaries(st.sampled_from(("a", "b")), resources, max_size=2)
writes = st.lists(st.tuples(consumers, allocations), max_size=25)


def expected(held: Held, project: str, user: str | None) -> list[Usage]:
    """The usages, added up one by one."""
    numbers: Counter[str] = Counter()
    sums: dict[str, Counter[str]] = {}
    for consumer, has in held.values():
        if consumer.project_id == project and user in (None, consumer.user_id):
            numbers[consumer.consumer_type] += 1
            for amounts in has.values():
                sums.setdefault(consumer.consumer_type, Counter()).update(amounts)
    return [Usage(kind, numbers[kind], dict(sums.get(kind, {}))) for kind in sorted(numbers)]


def check(usages: OwnerUsages, held: Held) -> None:
    for project in PROJECTS:
        for user in (None, *USERS):
            assert usages.usages(project, user) == expected(held, project, user)
    assert set(usages.owners()) == {
        Owner(each.project_id, each.user_id, each.consumer_type) for each, _ in held.values()
    }


def write(held: Held, consumer: Consumer, has: Allocations) -> AllocationsChanged:
    """The change by which a consumer has these allocations and no others; without any it is gone."""
    before, held_before = held.get(consumer.uuid, (None, {}))
    if has:
        held[consumer.uuid] = consumer, has
        return AllocationsChanged(consumer.uuid, before, consumer, held_before, has)
    held.pop(consumer.uuid, None)
    return AllocationsChanged(consumer.uuid, before, None, held_before, {})


@given(writes, st.integers(0, 25))
def test_usages_are_the_sums_of_what_consumers_hold_after_changes_and_after_their_undoing(
    written: list[tuple[Consumer, Allocations]], back_to: int
) -> None:
    usages, held = OwnerUsages(), dict[str, tuple[Consumer, Allocations]]()
    states, changes = [dict(held)], []
    for consumer, has in written:
        change = write(held, consumer, has)
        usages.apply(change)
        changes.append(change)
        states.append(dict(held))
        check(usages, held)
    copy = usages.copy()
    for change in reversed(changes[back_to:]):
        usages.apply(inverse(change))
    check(usages, states[min(back_to, len(changes))])
    check(copy, held)


@given(writes)
def test_usages_from_columns_change_as_those_that_changes_have_made(
    written: list[tuple[Consumer, Allocations]],
) -> None:
    held: Held = {}
    for consumer, has in written[::2]:
        write(held, consumer, has)
    places: dict[Owner, int] = {}
    for consumer, _ in held.values():
        owner = Owner(consumer.project_id, consumer.user_id, consumer.consumer_type)
        places.setdefault(owner, len(places))
    numbers = np.zeros(len(places), dtype=np.int64)
    amounts: dict[str, np.ndarray] = {}
    for consumer, has in held.values():
        at = places[Owner(consumer.project_id, consumer.user_id, consumer.consumer_type)]
        numbers[at] += 1
        for per_class in has.values():
            for name, amount in per_class.items():
                amounts.setdefault(name, np.zeros(len(places), dtype=np.int64))[at] += amount
    usages = OwnerUsages.load(list(places), numbers, amounts)
    check(usages, held)
    for consumer, has in written[1::2]:
        usages.apply(write(held, consumer, has))
    check(usages, held)


def test_owners_that_come_and_go_take_no_more_rows_and_names() -> None:
    usages = OwnerUsages()
    for number in range(1000):
        consumer = Consumer("c", f"project {number}", f"user {number}", 1)
        has = {"a": {"VCPU": 1}}
        change = AllocationsChanged("c", None, consumer, {}, has)
        usages.apply(change)
        usages.apply(inverse(change))
    assert usages.owners() == []
    assert len(usages._project) < 100
    assert len(usages._projects.names) == len(usages._users.names) == 1

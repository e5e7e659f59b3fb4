"""Verify is silent about what is right and names what is wrong: one test for each kind of finding."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from roost.fleet import Fleet
from roost.ledger import verify as module
from roost.ledger.breaches import over_capacity, violates_units
from roost.ledger.errors import Damaged
from roost.ledger.load import load
from roost.model.assignment import AssignedCell, Assignment
from roost.model.change import AllocationsChanged, TraitsChanged
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import ConsumerWrite, DeleteAllocations, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider, UpdateProvider
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from support.ledgers import claim, findings_in, host, opened, run

AVX = frozenset({"HW_CPU_X86_AVX"})
ROW = "(SELECT id FROM resource_providers WHERE uuid = 'p')"
VCPU = "(SELECT id FROM resource_classes WHERE name = 'VCPU')"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger in which all is right. Its commits: 1 standard names, 2-3 p, 4-5 q below p, 6 traits,
    7 aggregates, 8 claim of c, 9 claim of d, 10 d freed."""

    async def fill() -> None:
        async with opened(tmp_path / "ledger.db") as [ledger]:
            await run(ledger, *host("p", VCPU=8, DISK_GB=100), *host("q", "p", VCPU=4))
            await run(ledger, SetTraits("p", AVX), SetAggregates("p", frozenset({"agg"})))
            await run(ledger, claim("c", "p", VCPU=4, DISK_GB=50), claim("d", "p", VCPU=1))
            await run(ledger, DeleteAllocations("d"))

    asyncio.run(fill())
    return tmp_path / "ledger.db"


def spoil(path: Path, *statements: str) -> None:
    """Change tables behind the ledger's back. Foreign keys are not enforced."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0, f"{statement} changes nothing"


def found(path: Path) -> list[tuple[str, str]]:
    return [(finding.kind, finding.subject) for finding in findings_in(path)]


def detail(path: Path, kind: str) -> str:
    [text] = [finding.detail for finding in findings_in(path) if finding.kind == kind]
    return text


def test_nothing_is_found_where_all_is_right(path):
    assert findings_in(path) == []


def test_progress_counts_each_commit_once(path):
    shown = []
    with sa.create_engine(f"sqlite:///{path}").connect() as connection:
        assert module.verify(connection, lambda done, total: shown.append((done, total))) == []
    assert {total for _, total in shown} == {10}
    assert [done for done, _ in shown] == sorted(done for done, _ in shown)
    assert shown[-1] == (10, 10)


def test_verify_writes_nothing(path):
    with closing(sqlite3.connect(path)) as connection:
        before = list(connection.iterdump())
    findings_in(path)
    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before


@pytest.mark.parametrize("seq", range(1, 10))
def test_nothing_is_found_in_a_trimmed_ledger(path, seq):
    spoil(path, f"DELETE FROM commits WHERE seq <= {seq}")
    assert findings_in(path) == []


@pytest.mark.parametrize(
    ("statement", "subject"),
    [
        (f"UPDATE allocations SET provider_id = 99 WHERE resource_class_id = {VCPU}", "consumer c"),
        ("UPDATE allocations SET resource_class_id = 9999 WHERE used = 50", "consumer c"),
        ("DELETE FROM consumers WHERE uuid = 'c'", "consumer with id"),
        (f"UPDATE inventories SET provider_id = 99 WHERE provider_id = {ROW}", "on provider 99"),
        ("UPDATE inventories SET resource_class_id = 9999 WHERE total = 8", "inventory of class 9999"),
        ("UPDATE provider_traits SET trait_id = 9999", "trait 9999"),
        ("UPDATE provider_traits SET provider_id = 99", "on provider 99"),
        ("UPDATE provider_aggregates SET provider_id = 99", "aggregate agg"),
        ("UPDATE resource_providers SET parent_id = 99 WHERE uuid = 'q'", "resource provider q"),
        ("DELETE FROM resource_classes WHERE name = 'VCPU'", "consumer c"),
        ("DELETE FROM resource_providers WHERE uuid = 'p'", "resource provider q"),
    ],
)
def test_broken_reference(path, statement, subject):
    spoil(path, statement)
    broken = [where for kind, where in found(path) if kind == "broken-reference"]
    assert any(subject in where for where in broken)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE allocations SET provider_id = 99", "provider 99"),
        ("UPDATE allocations SET resource_class_id = 9999 WHERE used = 4", "class 9999"),
    ],
)
def test_allocations_of_what_is_not_there_are_not_served(path, statement, what):
    async def use() -> None:
        async with opened(path):
            pass

    spoil(path, statement)
    with pytest.raises(Damaged, match=f"allocations of resource {what} .*'roost db verify'"):
        asyncio.run(use())


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE inventories SET resource_class_id = 9999 WHERE total = 8", "inventories of resource class"),
        ("UPDATE provider_traits SET trait_id = 9999", "providers with trait"),
    ],
)
def test_inventories_and_traits_without_a_name_are_not_served(path, statement, what):
    async def use() -> None:
        async with opened(path):
            pass

    spoil(path, statement)
    with pytest.raises(Damaged, match=f"{what} 9999 .*'roost db verify'"):
        asyncio.run(use())


HUGE = 2**31


@pytest.mark.parametrize(
    ("column", "value"),
    [("total", HUGE), ("reserved", HUGE), ("min_unit", -HUGE), ("max_unit", 2**40), ("step_size", HUGE)],
)
def test_a_number_of_an_inventory_beyond_31_bits_is_out_of_range(path, column, value):
    spoil(path, f"UPDATE inventories SET {column} = {value} WHERE total = 8")
    assert ("out-of-range", f"{column} of VCPU of resource provider p") in found(path)
    assert detail(path, "out-of-range") == f"{value} is more than 2147483647"


def test_an_id_beyond_31_bits_is_out_of_range(path):
    spoil(path, f"UPDATE resource_providers SET id = {HUGE} WHERE uuid = 'q'")
    assert ("out-of-range", "id of resource provider q") in found(path)


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE inventories SET total = {HUGE}",
        f"UPDATE resource_providers SET id = {HUGE} WHERE uuid = 'q'",
        f"UPDATE allocations SET resource_class_id = {HUGE} WHERE used = 4",
    ],
)
def test_numbers_with_too_many_bits_are_not_served(path, statement):
    async def use() -> None:
        async with opened(path):
            pass

    spoil(path, statement)
    with pytest.raises(Damaged, match=r"too many bits .*'roost db verify'"):
        asyncio.run(use())


@pytest.mark.parametrize(
    ("table", "uuid", "subject", "seq"),
    [("resource_providers", "p", "resource provider p", 9), ("consumers", "c", "consumer c", 8)],
)
def test_a_time_is_that_of_the_newest_commit_that_names_the_thing(path, table, uuid, subject, seq):
    spoil(path, f"UPDATE {table} SET changed_at = 17 WHERE uuid = '{uuid}'")
    assert found(path) == [("time-differs", subject)]
    assert f"changed at 17.0, but commit {seq}, the newest that names it" in detail(path, "time-differs")


def test_a_time_of_a_commit_that_is_not_kept_is_not_judged(path):
    spoil(path, "UPDATE consumers SET changed_at = 17 WHERE uuid = 'c'", "DELETE FROM commits WHERE seq < 9")
    assert "time-differs" not in {kind for kind, _ in found(path)}


def test_parent_loop(path):
    spoil(
        path,
        "UPDATE resource_providers SET parent_id = (SELECT id FROM resource_providers WHERE uuid = 'q') "
        "WHERE uuid = 'p'",
    )
    assert ("parent-loop", "resource provider p") in found(path)
    assert detail(path, "parent-loop") == "is below itself: p under q under p"


def test_parent_loop_of_one(path):
    spoil(path, "UPDATE resource_providers SET parent_id = id WHERE uuid = 'q'")
    assert ("parent-loop", "resource provider q") in found(path)


def test_empty_consumer(path):
    spoil(path, "DELETE FROM allocations")
    assert ("empty-consumer", "consumer c") in found(path)


def test_no_inventory(path):
    spoil(path, f"DELETE FROM inventories WHERE provider_id = {ROW} AND resource_class_id = {VCPU}")
    assert ("no-inventory", "VCPU of resource provider p") in found(path)


def test_over_capacity(path):
    spoil(path, "UPDATE allocations SET used = 9 WHERE used = 4")
    assert ("over-capacity", "VCPU of resource provider p") in found(path)
    assert detail(path, "over-capacity").startswith("9 allocated of a capacity of 8; ")


def test_what_is_reserved_while_it_is_in_use_is_no_breach(path):
    spoil(path, "UPDATE inventories SET reserved = total")
    assert "over-capacity" not in {kind for kind, _ in found(path)}


def change(path: Path, *commands) -> None:
    async def act() -> None:
        async with opened(path) as [ledger]:
            await run(ledger, *commands)

    asyncio.run(act())


def test_over_capacity_by_an_inventory_that_shrank_says_so(path):
    change(path, SetInventories("p", {"VCPU": Inventory(3), "DISK_GB": Inventory(100)}), SetTraits("q", AVX))
    assert found(path) == [("over-capacity", "VCPU of resource provider p")]
    assert "commit 11 changed the inventory while this was allocated" in detail(path, "over-capacity")
    spoil(path, "DELETE FROM commits WHERE seq <= 11")
    assert "since before the oldest commit" in detail(path, "over-capacity")


def test_over_capacity_by_a_claim_that_should_have_been_refused_says_so(path):
    """Such a commit is made by hand: no command makes it."""
    held, holds = {"p": {"VCPU": 4, "DISK_GB": 50}}, {"p": {"VCPU": 9, "DISK_GB": 50}}
    with closing(sqlite3.connect(path)) as connection, connection:
        [[text]] = connection.execute("SELECT changes FROM commits WHERE seq = 8").fetchall()
        [owner] = [one["after"] for one in msgspec.json.decode(text) if one["type"] == "allocations"]
        consumer = msgspec.convert(owner, AllocationsChanged.__annotations__["after"])
        forged = AllocationsChanged("c", consumer, consumer, held, holds)
        row = (11, "me", 0.0, msgspec.json.encode([forged]).decode())
        connection.execute("INSERT INTO commits VALUES (?, ?, ?, ?)", row)
        connection.execute("UPDATE consumers SET changed_at = 0.0 WHERE uuid = 'c'")
        connection.execute("UPDATE allocations SET used = 9 WHERE used = 4")
    assert found(path) == [("over-capacity", "VCPU of resource provider p")]
    assert "commit 11 allocated it all the same" in detail(path, "over-capacity")


@pytest.mark.parametrize("rule", ["min_unit = 5", "max_unit = 3", "step_size = 3"])
def test_unit_violated(path, rule):
    spoil(path, f"UPDATE inventories SET {rule} WHERE total = 8")
    assert ("unit-violated", "allocation of VCPU of resource provider p by consumer c") in found(path)


def test_unit_violated_by_a_later_inventory_says_so(path):
    inventories = {"VCPU": Inventory(8, max_unit=3), "DISK_GB": Inventory(100)}
    change(path, SetInventories("p", inventories))
    assert [kind for kind, _ in found(path)] == ["unit-violated"]
    assert "commit 11 changed the inventory" in detail(path, "unit-violated")


def spoiled_load(monkeypatch: pytest.MonkeyPatch, *changes) -> None:
    """Have fleets load with a mistake."""

    def mistaken(connection) -> Fleet:
        fleet = load(connection)
        for change in changes:
            fleet.apply(change)
        return fleet

    monkeypatch.setattr(module, "load", mistaken)


def test_use_differs(path, monkeypatch):
    spoiled_load(monkeypatch, AllocationsChanged("", None, None, {}, {"p": {"VCPU": 1}}))
    assert ("use-differs", "VCPU of resource provider p") in found(path)


def test_fleet_differs(path, monkeypatch):
    spoiled_load(monkeypatch, TraitsChanged("q", (), tuple(AVX)))
    assert ("fleet-differs", "traits of resource provider q") in found(path)


def test_commit_gap(path):
    spoil(path, "DELETE FROM commits WHERE seq IN (4, 5, 8)")
    assert found(path) == [("commit-gap", "commits 4 to 5"), ("commit-gap", "commit 8")]


@pytest.mark.parametrize("text", ["no JSON", '[{"type": "unheard of"}]', '[{"type": "traits"}]'])
def test_commit_unreadable(path, text):
    spoil(path, f"UPDATE commits SET changes = '{text}' WHERE seq = 6")
    assert found(path) == [("commit-unreadable", "commit 6")]


@pytest.mark.parametrize(
    ("statement", "subject"),
    [
        ("UPDATE resource_providers SET name = 'x' WHERE uuid = 'q'", "resource provider q"),
        ("UPDATE resource_providers SET parent_id = NULL WHERE uuid = 'q'", "resource provider q"),
        (
            "UPDATE resource_providers SET generation = 7 WHERE uuid = 'q'",
            "generation of resource provider q",
        ),
        ("UPDATE inventories SET total = 9 WHERE total = 8", "inventories of resource provider p"),
        ("DELETE FROM inventories WHERE total = 4", "inventories of resource provider q"),
        ("DELETE FROM provider_traits", "traits of resource provider p"),
        ("UPDATE provider_aggregates SET aggregate_uuid = 'x'", "aggregates of resource provider p"),
        ("UPDATE resource_classes SET id = 77 WHERE name = 'SRIOV_NET_VF'", "resource class SRIOV_NET_VF"),
        ("DELETE FROM traits WHERE name = 'HW_CPU_X86_MMX'", "trait HW_CPU_X86_MMX"),
        ("UPDATE consumers SET project_id = 'x'", "consumer c"),
        ("UPDATE consumers SET generation = 9", "consumer c"),
        ("UPDATE allocations SET used = 3 WHERE used = 4", "consumer c"),
        ("DELETE FROM allocations WHERE used = 50", "consumer c"),
    ],
)
def test_state_differs(path, statement, subject):
    spoil(path, statement)
    assert ("state-differs", subject) in found(path)


def test_state_differs_where_a_commit_contradicts_an_earlier_one(path):
    change(path, UpdateProvider("q", "newer"), UpdateProvider("q", "newest"))
    spoil(path, """UPDATE commits SET changes = replace(changes, '"newer"', '"other"') WHERE seq = 11""")
    assert found(path) == [("state-differs", "resource provider q")]
    assert "commit 12 says it was" in detail(path, "state-differs")


PINNED = (AssignedCell(0, 0, pinned=((0, 4), (1, 5))),)


def assigned(consumer: str, *cells: AssignedCell) -> WriteAllocations:
    write = ConsumerWrite(
        consumer=consumer,
        allocations={"p": {"VCPU": 1}},
        project_id="project",
        user_id="user",
        assignment=Assignment("p", cells),
    )
    return WriteAllocations((write,))


def test_assignments_that_come_and_go_are_in_order(path):
    moved = (AssignedCell(0, 0, pinned=((0, 6),)),)
    change(
        path, assigned("x", *PINNED), assigned("x", *moved), assigned("y", *PINNED), DeleteAllocations("x")
    )
    assert found(path) == []


def test_cpus_and_devices_that_two_consumers_have(path):
    change(path, assigned("x", *PINNED), assigned("y", AssignedCell(0, 0, pinned=((0, 6),))))
    spoil(path, "UPDATE consumers SET assignment = replace(assignment, '[0,6]', '[0,5]') WHERE uuid = 'y'")
    assert ("assigned-twice", "node p") in found(path)
    assert detail(path, "assigned-twice") == "consumers x and y both have host CPU 5"
    assert ("state-differs", "consumer y") in found(path)


def test_an_assignment_that_cannot_be_read(path):
    change(path, assigned("x", *PINNED))
    spoil(path, "UPDATE consumers SET assignment = '{}' WHERE uuid = 'x'")
    assert ("assignment-unreadable", "consumer x") in found(path)

    async def use() -> None:
        async with opened(path):
            pass

    with pytest.raises(Damaged, match=r"the assignment of consumer x cannot be read: .*'roost db verify'"):
        asyncio.run(use())


def test_assignments_of_a_fleet_that_differ(path, monkeypatch):
    change(path, assigned("x", *PINNED))

    def spoiled(connection):
        fleet = load(connection)
        fleet.assigned.change("x", fleet.assigned.on("p")["x"], None)
        return fleet

    monkeypatch.setattr(module, "load", spoiled)
    assert found(path) == [("fleet-differs", "assignments on node p")]


def test_unexplained(path):
    spoil(
        path,
        "INSERT INTO traits VALUES (9999, 'CUSTOM_X')",
        "INSERT INTO resource_providers VALUES (9, 'x', 'x', NULL, 0, 0)",
        "INSERT INTO consumers VALUES (7, 'y', 'project', 'user', 'INSTANCE', 1, 0, NULL, NULL)",
        f"INSERT INTO allocations VALUES (7, {ROW}, {VCPU}, 1)",
    )
    expected = {
        ("unexplained", subject)
        for subject in (
            "resource provider x",
            "generation of resource provider x",
            "trait CUSTOM_X",
            "consumer y",
        )
    }
    assert expected <= set(found(path))


def test_unexplained_where_no_commit_is_left(path):
    spoil(path, "DELETE FROM commits")
    assert found(path) == [("unexplained", "all tables")]


def test_one_mistake_is_one_finding_in_a_long_history(path):
    change(path, *(SetTraits("p", AVX if number % 2 else frozenset()) for number in range(20)))
    spoil(path, "DELETE FROM provider_traits")
    assert found(path) == [("state-differs", "traits of resource provider p")]


def test_the_commit_that_made_the_last_provider_is_missed(path):
    change(path, CreateProvider("r", "r"))
    spoil(path, "DELETE FROM commits WHERE seq = 11")
    assert ("unexplained", "resource provider r") in found(path)


@pytest.mark.parametrize(("used", "expected"), [(9, False), (12, False), (13, True), (2**40, True)])
def test_capacity_is_overcommitted_and_what_is_reserved_may_be_in_use(used, expected):
    assert over_capacity(Inventory(6, reserved=2, allocation_ratio=2.0), used) is expected


def test_units_alone_are_judged_alone():
    assert not violates_units(Inventory(1, min_unit=4, max_unit=8, step_size=4), 8)
    assert violates_units(Inventory(1, min_unit=4, max_unit=8, step_size=4), 6)

"""Each anomaly of a source is reported, and is kept or left out as its kind says."""

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from roost.fleet import Fleet
from roost.ledger import Held
from roost.ledger.findings import (
    BROKEN_REFERENCE,
    EMPTY_CONSUMER,
    NO_INVENTORY,
    OVER_CAPACITY,
    PARENT_LOOP,
    UNIT_VIOLATED,
)
from roost.model.allocation import UNKNOWN_TYPE
from roost.placement.exchange import ExchangeReport, anomalies
from support.exchange.exchanging import at, fleet_in, holdings_in, imported, verified
from support.exchange.rich_state import AGGREGATES, uid

NEW = "11111111-1111-4111-8111-111111111111"
HOST, PCI, CONSUMER = uid("host-0"), uid("host-2-pci"), uid("consumer-2")
NOBODY = "00000000-0000-0000-0000-000000000000"

_HOST = f"(SELECT id FROM resource_providers WHERE uuid = '{HOST}')"
_PCI = f"(SELECT id FROM resource_providers WHERE uuid = '{PCI}')"
_CLASS = "(SELECT id FROM resource_classes WHERE name = 'MEMORY_MB')"


class Case(NamedTuple):
    """Damage, the anomalies that it must raise (kind, words in the subject), and what must be true after."""

    sql: Sequence[str]
    anomalies: Sequence[tuple[str, str]]
    holds: Callable[[Fleet, dict[str, Held]], object]


def _allocation(consumer: str, provider: str = _HOST, class_id: str = _CLASS, used: object = 256) -> str:
    return (
        "INSERT INTO allocations (consumer_id, resource_provider_id, resource_class_id, used) "
        f"VALUES ('{consumer}', {provider}, {class_id}, {used})"
    )


def _provider(column: str, value: str, uuid: str = HOST) -> str:
    return f"UPDATE resource_providers SET {column} = {value} WHERE uuid = '{uuid}'"


def _inventory(**values: str) -> str:
    parts = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"UPDATE inventories SET {parts} WHERE resource_provider_id = {_HOST}"


def _consumer(column: str) -> str:
    return f"UPDATE consumers SET {column} = 999 WHERE uuid = '{CONSUMER}'"


def _record(fleet: Fleet, uuid: str = HOST) -> object:
    return fleet.inventories(fleet.row(uuid)).get("MEMORY_MB")


def _parent(fleet: Fleet, uuid: str) -> str | None:
    return fleet.facts(fleet.row(uuid)).parent


CASES = {
    "allocation without consumer": Case(
        [_allocation(NEW)],
        [(anomalies.NO_CONSUMER, NEW)],
        lambda fleet, held: (
            held[NEW].allocations == {HOST: {"MEMORY_MB": 256}}
            and held[NEW].consumer.project_id == held[NEW].consumer.user_id == NOBODY
            and (held[NEW].consumer.generation, held[NEW].consumer.consumer_type) == (0, UNKNOWN_TYPE)
        ),
    ),
    "allocation of a provider that is gone": Case(
        [_allocation(CONSUMER, "9999"), _allocation(NEW, "9999")],
        [(anomalies.ORPHANED_ALLOCATION, CONSUMER), (anomalies.ORPHANED_ALLOCATION, NEW)],
        lambda fleet, held: NEW not in held and len(held[CONSUMER].allocations) == 1,
    ),
    "allocation of a class that is gone": Case(
        [_allocation(CONSUMER, class_id="9999")],
        [(anomalies.ORPHANED_ALLOCATION, CONSUMER)],
        lambda fleet, held: HOST not in held[CONSUMER].allocations,
    ),
    "two allocations of the same": Case(
        [_allocation(CONSUMER), _allocation(CONSUMER, used=512)],
        [(anomalies.DUPLICATE_ALLOCATION, CONSUMER)],
        lambda fleet, held: held[CONSUMER].allocations[HOST] == {"MEMORY_MB": 768},
    ),
    "allocations of nothing and of too much": Case(
        [_allocation(CONSUMER, used=0), _allocation(CONSUMER, used=2**31), _allocation(CONSUMER, used="'x'")],
        [(anomalies.ODD_AMOUNT, CONSUMER)] * 3,
        lambda fleet, held: HOST not in held[CONSUMER].allocations,
    ),
    "allocation without inventory": Case(
        [_allocation(CONSUMER, class_id="0")],
        [(NO_INVENTORY, f"VCPU of resource provider {HOST}")],
        lambda fleet, held: held[CONSUMER].allocations[HOST] == {"VCPU": 256},
    ),
    "allocations over capacity and off the step": Case(
        [_allocation(CONSUMER, used=100_001)],
        [(OVER_CAPACITY, f"MEMORY_MB of resource provider {HOST}"), (UNIT_VIOLATED, CONSUMER)],
        lambda fleet, held: held[CONSUMER].allocations[HOST] == {"MEMORY_MB": 100_001},
    ),
    "consumer without allocations": Case(
        [f"DELETE FROM allocations WHERE consumer_id = '{CONSUMER}'"],
        [(EMPTY_CONSUMER, CONSUMER)],
        lambda fleet, held: CONSUMER not in held,
    ),
    "consumer without project": Case(
        [_consumer("project_id")],
        [(anomalies.NO_OWNER, CONSUMER)],
        lambda fleet, held: (
            (held[CONSUMER].consumer.project_id, held[CONSUMER].consumer.user_id) == (NOBODY, "user")
        ),
    ),
    "consumer without user": Case(
        [_consumer("user_id")],
        [(anomalies.NO_OWNER, CONSUMER)],
        lambda fleet, held: held[CONSUMER].consumer.user_id == NOBODY,
    ),
    "consumer of a type that is gone": Case(
        [_consumer("consumer_type_id")],
        [(anomalies.NO_OWNER, CONSUMER)],
        lambda fleet, held: held[CONSUMER].consumer.consumer_type == UNKNOWN_TYPE,
    ),
    "long project": Case(
        ["UPDATE projects SET external_id = external_id || 'x' WHERE length(external_id) = 255"],
        [(anomalies.LONG_NAME, uid("consumer-4"))],
        lambda fleet, held: held[uid("consumer-4")].consumer.project_id == "P" * 255,
    ),
    "consumer whose uuid is too long": Case(
        [_allocation("c" * 37)],
        [(anomalies.ODD_UUID, "c" * 37)],
        lambda fleet, held: "c" * 37 not in held,
    ),
    "no root": Case(
        [_provider("root_provider_id", "NULL")],
        [(anomalies.NO_ROOT, HOST)],
        lambda fleet, held: fleet.root.item(fleet.row(HOST)) == fleet.row(HOST),
    ),
    "wrong root": Case(
        [_provider("root_provider_id", _HOST, PCI)],
        [(anomalies.NO_ROOT, PCI)],
        lambda fleet, held: fleet.uuid(fleet.root.item(fleet.row(PCI))) == uid("host-2"),
    ),
    "its own parent": Case(
        [_provider("parent_provider_id", _HOST)],
        [(PARENT_LOOP, HOST)],
        lambda fleet, held: _parent(fleet, HOST) is None,
    ),
    "a loop": Case(
        [_provider("parent_provider_id", _PCI, uid("host-2"))],
        [(PARENT_LOOP, uid("host-2"))],
        lambda fleet, held: _parent(fleet, uid("host-2")) is None and _parent(fleet, PCI) is not None,
    ),
    "a parent that is gone": Case(
        [_provider("parent_provider_id", "9999", PCI)],
        [(BROKEN_REFERENCE, PCI), (anomalies.NO_ROOT, PCI), (anomalies.NO_ROOT, uid("late child"))],
        lambda fleet, held: _parent(fleet, PCI) is None and _parent(fleet, uid("late child")) == PCI,
    ),
    "no name, no generation": Case(
        [_provider("name", "NULL"), _provider("generation", "NULL")],
        [(anomalies.ODD_NAME, HOST), (anomalies.NO_GENERATION, HOST)],
        lambda fleet, held: (
            (fleet.name(fleet.row(HOST)), fleet.generation.item(fleet.row(HOST))) == (HOST, 0)
        ),
    ),
    "long names": Case(
        [_provider("name", f"'{'n' * 201}'"), _provider("name", f"'{'n' * 202}'", PCI)],
        [(anomalies.LONG_NAME, HOST), (anomalies.LONG_NAME, PCI)],
        lambda fleet, held: fleet.name(fleet.row(HOST)) == f"{'n' * 163}~{HOST}",
    ),
    "a uuid that is none": Case(
        [_provider("uuid", "'odd one'", uid("empty"))],
        [(anomalies.ODD_UUID, "odd one")],
        lambda fleet, held: "odd one" in fleet,
    ),
    "a uuid that is too long": Case(
        [_provider("uuid", f"'{'u' * 37}'", uid("late child"))],
        [(anomalies.ODD_UUID, "u" * 37), (BROKEN_REFERENCE, "inventory of class")],
        lambda fleet, held: "u" * 37 not in fleet,
    ),
    "inventory that the API refuses": Case(
        [_inventory(min_unit="0", reserved="70000")],
        [(anomalies.ODD_INVENTORY, HOST)],
        lambda fleet, held: fleet.inventories(fleet.row(HOST))["MEMORY_MB"].reserved == 70000,
    ),
    "inventory of nothing": Case(
        [_inventory(total="0")],
        [(anomalies.ODD_INVENTORY, HOST), (NO_INVENTORY, HOST)],
        lambda fleet, held: _record(fleet) is None and uid("consumer-0") in held,
    ),
    "inventory without end": Case(
        [
            _inventory(allocation_ratio="9e999"),
            f"INSERT INTO inventories SELECT NULL, NULL, NULL, {_PCI}, 0, 4294967296, 0, 1, 1, 1, 1.0",
        ],
        [(anomalies.ODD_INVENTORY, HOST), (NO_INVENTORY, HOST), (anomalies.ODD_INVENTORY, PCI)],
        lambda fleet, held: _record(fleet) is None,
    ),
    "inventory of a class that is gone": Case(
        [_inventory(resource_class_id="9999")],
        [(BROKEN_REFERENCE, HOST), (NO_INVENTORY, HOST)],
        lambda fleet, held: _record(fleet) is None,
    ),
    "rows of a provider that is gone": Case(
        [
            "UPDATE resource_provider_aggregates SET resource_provider_id = 9999 "
            f"WHERE resource_provider_id = {_HOST} AND aggregate_id = 1",
            f"UPDATE resource_provider_traits SET resource_provider_id = 9999 "
            f"WHERE resource_provider_id = {_HOST}",
        ],
        [(BROKEN_REFERENCE, "aggregate 1"), *[(BROKEN_REFERENCE, "trait")] * 2],
        lambda fleet, held: (
            fleet.traits_of(fleet.row(HOST)) == () and len(fleet.aggregates_of(fleet.row(HOST))) == 1
        ),
    ),
    "traits and aggregates that are gone": Case(
        [
            f"INSERT INTO resource_provider_traits VALUES (NULL, NULL, 9999, {_HOST})",
            f"INSERT INTO resource_provider_aggregates VALUES (NULL, NULL, {_HOST}, 9999)",
        ],
        [(BROKEN_REFERENCE, f"trait 9999 of resource provider {HOST}"), (BROKEN_REFERENCE, "aggregate 9999")],
        lambda fleet, held: len(fleet.aggregates_of(fleet.row(HOST))) == 2,
    ),
    "an aggregate without uuid": Case(
        [f"UPDATE placement_aggregates SET uuid = NULL WHERE uuid = '{AGGREGATES[0]}'"],
        [(anomalies.ODD_UUID, "aggregate with id"), *[(BROKEN_REFERENCE, "aggregate")] * 4],
        lambda fleet, held: fleet.aggregates_of(fleet.row(HOST)) == (AGGREGATES[1],),
    ),
    "names that nobody knows": Case(
        [
            "UPDATE resource_classes SET name = 'ODD' WHERE name = 'CUSTOM_MAGIC'",
            "UPDATE traits SET name = 'odd' WHERE name = 'CUSTOM_FAST'",
        ],
        [(anomalies.ODD_NAME, "resource_classes"), (anomalies.ODD_NAME, "traits")],
        lambda fleet, held: "ODD" in fleet.inventories(fleet.row(PCI)) and "odd" in fleet.traits,
    ),
}


@pytest.fixture(scope="module")
def sound(rich_source: Path, tmp_path_factory: pytest.TempPathFactory) -> ExchangeReport:
    """The report on the source before it is damaged."""
    return imported(at(rich_source), at(tmp_path_factory.mktemp("sound") / "roost.db"))


@pytest.mark.parametrize("name", CASES)
def test_damage_is_named(
    name: str, rich_source: Path, empty_database: Path, sound: ExchangeReport, tmp_path: Path
) -> None:
    case = CASES[name]
    source, roost = tmp_path / "placement.db", at(tmp_path / "roost.db")
    shutil.copy(rich_source, source)
    shutil.copy(empty_database, tmp_path / "roost.db")
    with closing(sqlite3.connect(source)) as connection, connection:
        for statement in case.sql:
            assert connection.execute(statement).rowcount
    new = [anomaly for anomaly in imported(at(source), roost).anomalies if anomaly not in sound.anomalies]
    assert sorted(anomaly.kind for anomaly in new) == sorted(kind for kind, _ in case.anomalies), new
    for kind, words in case.anomalies:
        assert [each for each in new if each.kind == kind and words in each.subject], (kind, words, new)
    assert case.holds(fleet_in(roost), holdings_in(roost))
    # Verify finds nothing but the anomalies that were kept.
    assert {finding.kind for finding in verified(roost)} <= {OVER_CAPACITY, NO_INVENTORY, UNIT_VIOLATED}
    assert imported(at(source), roost).copied.total() == 0


def test_incomplete_consumers_belong_to_whom_the_configuration_says(
    rich_source: Path, tmp_path: Path
) -> None:
    source, roost = tmp_path / "placement.db", at(tmp_path / "roost.db")
    shutil.copy(rich_source, source)
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute(_allocation(NEW))
    imported(
        at(source), roost, incomplete_consumer_project_id="a project", incomplete_consumer_user_id="a user"
    )
    owner = holdings_in(roost)[NEW].consumer
    assert (owner.project_id, owner.user_id) == ("a project", "a user")

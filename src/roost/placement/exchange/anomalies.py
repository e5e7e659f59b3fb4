"""The kinds of anomalies in an OpenStack Placement database, and checks that find some of them.

The docstring of each constant says what is wrong, and whether the data is kept or left out.
"""

import re
from uuid import UUID

from roost.fleet import Fleet
from roost.fleet.fits import has_room, meets_units
from roost.ledger import Held
from roost.ledger.breaches import over_capacity
from roost.ledger.findings import NO_INVENTORY, OVER_CAPACITY, UNIT_VIOLATED
from roost.placement.exchange.report import ExchangeReport

ORPHANED_ALLOCATION = "orphaned-allocation"
"""The provider or resource class of an allocation does not exist. Left out."""
DUPLICATE_ALLOCATION = "duplicate-allocation"
"""A consumer has several allocations of one class from one provider. Kept as their sum."""
ODD_AMOUNT = "odd-amount"
"""An allocation below 1 or above the largest integer of the API. Left out."""
NO_CONSUMER = "no-consumer"
"""Allocations of a consumer without a row. Kept, with the project and user of incomplete consumers."""
NO_OWNER = "no-owner"
"""The project, user or type of a consumer has no row. Kept, with that of incomplete consumers."""
ODD_INVENTORY = "odd-inventory"
"""An inventory with values that the API would refuse. Kept if Roost can store it, else left out."""
NO_ROOT = "no-root"
"""The recorded root of a provider is not the root of its tree, or is missing. The former is kept."""
ODD_UUID = "odd-uuid"
"""A text other than a lower-case UUID with dashes. Kept, unless longer than `UUID_LIMIT`."""
DUPLICATE_AGGREGATE = "duplicate-aggregate"
"""Several aggregates whose UUIDs differ only in spelling. Kept."""
ODD_NAME = "odd-name"
"""A missing name, or one that is neither standard nor of the form of custom names. Kept."""
LONG_NAME = "long-name"
"""A name that is longer than its column. Cut to the column's length."""
NO_GENERATION = "no-generation"
"""A provider without a generation. Kept with generation 0."""
ROUNDED = "rounded"
"""An allocation ratio that the target stores with fewer digits. Kept, rounded."""
NO_ASSIGNMENTS = "no-assignments"
"""Consumers with an assignment. Kept without it: the target has no column for assignments."""
NO_GROUPS = "no-groups"
"""Members of server groups. Kept without their group: the target has no column for groups."""

_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")

UUID_LIMIT = 36
"""Characters in a UUID column. A longer text is left out."""


def is_canonical(uuid: str) -> bool:
    """Return whether a text is a lower-case UUID with dashes."""
    return _UUID.fullmatch(uuid) is not None


def canonical(uuid: str) -> str:
    """Return a UUID in lower case with dashes; a text that is no UUID as it is."""
    try:
        return str(UUID(uuid))
    except ValueError:
        return uuid


def shortened(text: str, limit: int, what: str, report: ExchangeReport) -> str:
    """Return at most ``limit`` characters of a text, and report a longer one."""
    if len(text) <= limit:
        return text
    report.add(LONG_NAME, what, f"{text!r} has {len(text)} characters, kept are {limit}")
    return text[:limit]


def report_overuse(fleet: Fleet, report: ExchangeReport) -> None:
    """Report inventories that are allocated beyond their capacity, and allocations without inventory."""
    for name in sorted(fleet.inventoried_classes()):
        columns = fleet.inventory_columns(name)
        overused = ~has_room(columns.used[: columns.n], columns.capacity[: columns.n])
        for row in columns.row[: columns.n][overused & (columns.used[: columns.n] > 0)].tolist():
            used, inventory = columns.used_by(row), columns.inventory(row)
            subject = f"{name} of resource provider {fleet.uuid(row)}"
            if inventory is None:
                report.add(NO_INVENTORY, subject, f"{used} allocated, but there is no inventory; kept")
            elif over_capacity(inventory, used):
                detail = f"{used} allocated of a capacity of {inventory.capacity}; kept"
                report.add(OVER_CAPACITY, subject, detail)


def report_broken_units(fleet: Fleet, held: Held, report: ExchangeReport) -> None:
    """Report the allocations of a consumer that break min_unit, max_unit or step_size."""
    for provider, resources in held.allocations.items():
        row = fleet.row(provider)
        for name, amount in resources.items():
            columns = fleet.inventory_columns(name)
            slot = columns.slot(row)
            if slot < 0 or not columns.total.item(slot):
                continue
            units = columns.min_unit.item(slot), columns.max_unit.item(slot), columns.step_size.item(slot)
            if not meets_units(amount, *units):
                report.add(
                    UNIT_VIOLATED,
                    f"allocation of {name} of resource provider {provider} by consumer {held.consumer.uuid}",
                    "{} breaks min_unit {}, max_unit {} or step_size {}; kept".format(amount, *units),
                )

"""The words for what is doubtful in a source."""

import re
from uuid import UUID

from roost.exchange.report import Report
from roost.fleet import Fleet
from roost.fleet.fits import has_room, meets_units
from roost.ledger import Held
from roost.ledger.findings import NO_INVENTORY, OVER_CAPACITY, UNIT_VIOLATED

ORPHANED_ALLOCATION = "orphaned-allocation"
"""An allocation's provider or resource class is not there. Left out."""
DUPLICATE_ALLOCATION = "duplicate-allocation"
"""A consumer has several allocations of one class of one provider. Kept as their sum."""
ODD_AMOUNT = "odd-amount"
"""An allocation of nothing, of less, or of more than the API knows. Left out."""
NO_CONSUMER = "no-consumer"
"""Allocations of a consumer that has no record. Kept, with the incomplete project and user."""
NO_OWNER = "no-owner"
"""A consumer's project, user or type has no record. Kept, with the incomplete one."""
ODD_INVENTORY = "odd-inventory"
"""Values that the API would refuse. Kept, or left out where they mean nothing."""
NO_ROOT = "no-root"
"""A provider's root is not recorded, or not the one that its parents lead to. The latter is kept."""
ODD_UUID = "odd-uuid"
"""Not a lower-case UUID with dashes. Kept, unless longer than 36 characters."""
DUPLICATE_AGGREGATE = "duplicate-aggregate"
"""Several spellings of one UUID are several aggregates. Kept."""
ODD_NAME = "odd-name"
"""A name that is not there, or that is neither standard nor of the form that custom names have. Kept."""
LONG_NAME = "long-name"
"""A name over its limit. Kept up to there."""
NO_GENERATION = "no-generation"
"""A provider without generation. Kept with 0."""
ROUNDED = "rounded"
"""An allocation ratio that the target cannot hold exactly."""

_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")

UUID_LIMIT = 36
"""Characters that the columns for UUIDs hold."""


def is_canonical(uuid: str) -> bool:
    """Whether this is a lower-case UUID with dashes."""
    return _UUID.fullmatch(uuid) is not None


def canonical(uuid: str) -> str:
    """The lower-case UUID with dashes that is meant; the text itself if it is none."""
    try:
        return str(UUID(uuid))
    except ValueError:
        return uuid


def shortened(text: str, limit: int, what: str, report: Report) -> str:
    """The text up to its limit; a doubt if it is longer."""
    if len(text) <= limit:
        return text
    report.doubt(LONG_NAME, what, f"{text!r} has {len(text)} characters, kept are {limit}")
    return text[:limit]


def doubt_use(fleet: Fleet, report: Report) -> None:
    """Name the providers that more is allocated from than they have."""
    for name in sorted(fleet.inventoried_classes()):
        stock = fleet.inventory_columns(name)
        overused = ~has_room(stock.used[: stock.n], stock.capacity[: stock.n])
        for row in stock.row[: stock.n][overused & (stock.used[: stock.n] > 0)].tolist():
            used, inventory = stock.used_by(row), stock.inventory(row)
            subject = f"{name} of resource provider {fleet.uuid(row)}"
            if inventory is None:
                report.doubt(NO_INVENTORY, subject, f"{used} allocated, but there is no inventory; kept")
            else:
                detail = f"{used} allocated of a capacity of {inventory.capacity}; kept"
                report.doubt(OVER_CAPACITY, subject, detail)


def doubt_units(fleet: Fleet, held: Held, report: Report) -> None:
    """Name a consumer's allocations that break min_unit, max_unit or step_size."""
    for provider, resources in held.allocations.items():
        row = fleet.row(provider)
        for name, amount in resources.items():
            stock = fleet.inventory_columns(name)
            slot = stock.slot(row)
            if slot < 0 or not stock.total.item(slot):
                continue
            units = stock.min_unit.item(slot), stock.max_unit.item(slot), stock.step_size.item(slot)
            if not meets_units(amount, *units):
                report.doubt(
                    UNIT_VIOLATED,
                    f"allocation of {name} of resource provider {provider} by consumer {held.consumer.uuid}",
                    "{} breaks min_unit {}, max_unit {} or step_size {}; kept".format(amount, *units),
                )

"""Breaches: allocations that violate their inventories, and the commits that caused them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from roost.fleet.fits import has_room, meets_units
from roost.ledger.audit_snapshot import AuditSnapshot
from roost.ledger.facts import CONSUMER, INVENTORIES
from roost.ledger.findings import NO_INVENTORY, OVER_CAPACITY, UNIT_VIOLATED, Finding
from roost.model.change import AllocationsChanged, Change, InventoryChanged
from roost.model.inventory import Inventory


@dataclass
class Breach:
    """An amount that its inventory does not allow: one consumer's allocation, or the sum of all.

    ``amount`` and ``inventory`` go back in time while commits are undone, until the amount is
    allowed: the commit undone then is the ``cause``, and the cause is ``known``.
    """

    kind: str
    provider: str
    resource_class: str
    consumer: str | None
    amount: int
    inventory: Inventory | None
    detail: str
    cause: str = "it has been so since before the oldest commit that is kept"
    known: bool = False

    def broken(self) -> bool:
        """Return whether the amount violates the inventory, both as of the commits undone so far."""
        if self.inventory is None:
            return self.amount > 0
        if self.consumer is None:
            return over_capacity(self.inventory, self.amount)
        return self.amount > 0 and violates_units(self.inventory, self.amount)

    def look_back(self, seq: int, change: Change) -> None:
        """Go back over one change of commit ``seq``."""
        if self.known:
            return
        if isinstance(change, InventoryChanged):
            self.inventory = change.before.get(self.resource_class)
            cause = f"commit {seq} changed the inventory while this was allocated"
        elif isinstance(change, AllocationsChanged) and self.consumer in (None, change.consumer):
            was = change.held.get(self.provider, {}).get(self.resource_class, 0)
            now = change.holds.get(self.provider, {}).get(self.resource_class, 0)
            self.amount -= now - was
            cause = f"commit {seq} allocated it all the same"
        else:
            return
        if not self.broken():
            self.cause, self.known = cause, True

    def finding(self) -> Finding:
        """Return the finding of the breach, with its cause."""
        what = f"{self.resource_class} of resource provider {self.provider}"
        if self.consumer is not None:
            what = f"allocation of {what} by consumer {self.consumer}"
        return Finding(self.kind, what, f"{self.detail}; {self.cause}")


class Breaches:
    """All breaches in an audit snapshot. `look_back` must be called for every change that is undone."""

    def __init__(self, snapshot: AuditSnapshot) -> None:
        self._all = [*_in_sum(snapshot), *_in_units(snapshot)]
        self._on: defaultdict[str, list[Breach]] = defaultdict(list)
        for breach in self._all:
            self._on[breach.provider].append(breach)

    def look_back(self, seq: int, change: Change) -> None:
        """Go back over one change of commit ``seq``."""
        if not self._all:
            return
        providers: Iterable[str] = ()
        if isinstance(change, InventoryChanged):
            providers = (change.provider,)
        elif isinstance(change, AllocationsChanged):
            providers = change.held.keys() | change.holds.keys()
        for provider in providers:
            for breach in self._on.get(provider, ()):
                breach.look_back(seq, change)

    def findings(self) -> list[Finding]:
        """Return a finding for each breach."""
        return [breach.finding() for breach in self._all]


def over_capacity(inventory: Inventory, used: int) -> bool:
    """Return whether more is in use than the inventory allows if nothing of it is reserved.

    A reserve of units in use is no breach: drivers reserve a bare metal node in use, so that it is cleaned
    before the next instance, and operators reserve units that are to become free.
    """
    return not has_room(used, msgspec.structs.replace(inventory, reserved=0).capacity)


def violates_units(inventory: Inventory, amount: int) -> bool:
    """Return whether one allocation violates min_unit, max_unit or step_size."""
    return not meets_units(amount, inventory.min_unit, inventory.max_unit, inventory.step_size)


def _in_sum(snapshot: AuditSnapshot) -> Iterator[Breach]:
    for (provider, name), used in sorted(snapshot.used.items()):
        inventory = snapshot.facts[INVENTORIES].get(provider, {}).get(name)
        if inventory is None:
            detail = f"{used} allocated, but the provider has no inventory of it"
            yield Breach(NO_INVENTORY, provider, name, None, used, None, detail)
        elif over_capacity(inventory, used):
            detail = f"{used} allocated of a capacity of {inventory.capacity}"
            yield Breach(OVER_CAPACITY, provider, name, None, used, inventory, detail)


def _in_units(snapshot: AuditSnapshot) -> Iterator[Breach]:
    for consumer, holding in snapshot.facts[CONSUMER].items():
        for provider, resources in holding.allocations.items():
            inventories = snapshot.facts[INVENTORIES].get(provider, {})
            for name, amount in resources.items():
                inventory = inventories.get(name)
                if inventory is not None and violates_units(inventory, amount):
                    detail = (
                        f"{amount} breaks min_unit {inventory.min_unit}, max_unit {inventory.max_unit} "
                        f"or step_size {inventory.step_size}"
                    )
                    yield Breach(UNIT_VIOLATED, provider, name, consumer, amount, inventory, detail)

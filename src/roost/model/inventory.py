"""Inventory: the amount of one resource class that one provider has, and the limits of allocations."""

import msgspec

from roost.model.vocabulary import MAX_INT


class Inventory(msgspec.Struct, frozen=True):
    """One inventory record.

    Amounts are whole units of the class (VCPU: threads, MEMORY_MB: MiB, DISK_GB: GiB). One allocation must
    be at least ``min_unit``, at most ``max_unit`` and a multiple of ``step_size``.
    Source: the defaults are those of the Placement API's inventory schema.
    """

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """Units that all allocations together may use: ``int((total - reserved) * allocation_ratio)``."""
        return int((self.total - self.reserved) * self.allocation_ratio)

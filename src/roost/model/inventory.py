"""Inventory: what one provider has of one resource class."""

import msgspec

from roost.model.vocabulary import MAX_INT


class Inventory(msgspec.Struct, frozen=True):
    """One inventory record, with Placement's own defaults.

    Amounts are whole units of the class (VCPU: threads, MEMORY_MB: MiB, DISK_GB: GiB).
    """

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """Units that may be allocated in all: ``int((total - reserved) * allocation_ratio)``."""
        return int((self.total - self.reserved) * self.allocation_ratio)

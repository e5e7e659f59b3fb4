"""`CellLack`: what a host cell lacks for a guest cell."""

from enum import Enum
from typing import NamedTuple


class LackKind(Enum):
    """Kinds of lacks. The value is the rest of a sentence, with the places ``wanted`` and ``has``."""

    PAGE_SIZE = "has no pages of the size that is asked for"
    PAGES = "has {has} MiB in pages that suit of the {wanted} MiB asked for"
    MEMORY = "has {has} MiB of memory of the {wanted} MiB asked for"
    SHARED_CPUS = "has {has} shared CPUs of the {wanted} asked for"
    DEDICATED_CPUS = "has {has} dedicated CPUs free of the {wanted} asked for"
    WHOLE_CORES = "has {has} whole cores free of the {wanted} asked for"
    NO_THREADS = "has no hyperthreading, which is asked for"
    THREADS = "has {has} CPUs in cores with free siblings of the {wanted} asked for"
    THREADS_EXPOSED = "has hyperthreads, and tells dedicated CPUs from shared ones: no core can be kept whole"
    CPU_RATIO = "has room for {has} shared vCPUs of the {wanted} asked for, by the CPU allocation ratio"
    RAM_RATIO = "has room for {has} MiB of the {wanted} MiB asked for, by the memory allocation ratio"


class CellLack(NamedTuple):
    """The first condition of a guest cell that a host cell does not meet."""

    kind: LackKind
    wanted: int = 0
    has: int = 0

    @property
    def text(self) -> str:
        """The rest of a sentence that begins with the cell's name."""
        return self.kind.value.format(wanted=self.wanted, has=self.has)

    @property
    def distance(self) -> float:
        """The missing share of the wanted amount, from 0 to 1."""
        return 1.0 if not self.wanted else min(1.0, max(0.0, (self.wanted - self.has) / self.wanted))

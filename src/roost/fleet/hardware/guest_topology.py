"""`GuestTopology`: the NUMA cells that an instance requests."""

from typing import Final, Literal

import msgspec

CpuPolicy = Literal["shared", "dedicated", "mixed"]
"""``dedicated``: each vCPU has a host CPU of its own. ``mixed``: some have. ``shared``: none has."""

ThreadPolicy = Literal["prefer", "isolate", "require"]
"""Policies for dedicated vCPUs: they may (prefer), must (require) or must not (isolate) share a host core."""

SMALL: Final = -1
"""A page size: the smallest of the host cell."""
LARGE: Final = -2
"""A page size: any but the smallest, larger ones first."""
ANY: Final = -3
"""A page size: any, larger ones first."""


class GuestCell(msgspec.Struct, frozen=True):
    """One NUMA cell of a guest.

    ``shared``: the number of its shared vCPUs. ``dedicated``: the numbers of its dedicated vCPUs, ascending.
    ``memory_mb``: MiB.
    """

    id: int
    shared: int
    dedicated: tuple[int, ...]
    memory_mb: int

    @property
    def pinned(self) -> int:
        """The number of dedicated vCPUs."""
        return len(self.dedicated)


class GuestTopology(msgspec.Struct, frozen=True, kw_only=True):
    """The NUMA cells of a guest, and the policies for all of them.

    ``page_size``: KiB, `SMALL`, `LARGE` or `ANY`; None if none is requested, so that memory is in the
    smallest pages. ``isolate_emulator``: emulator threads have a host CPU of their own, beside those of the
    first cell.

    Source: ``InstanceNUMATopology`` of ``nova/objects/instance_numa.py``.
    """

    cells: tuple[GuestCell, ...]
    cpu_policy: CpuPolicy = "shared"
    thread_policy: ThreadPolicy = "prefer"
    page_size: int | None = None
    isolate_emulator: bool = False

    @property
    def pins(self) -> bool:
        """True if the policy dedicates host CPUs to vCPUs. Then memory is not overcommitted either."""
        return self.cpu_policy != "shared"

    @property
    def shares(self) -> bool:
        """True if the policy allows shared vCPUs. Then allocation ratios limit them."""
        return self.cpu_policy != "dedicated"

    def reserved(self, number: int) -> int:
        """Return the number of host CPUs for emulator threads beside the cell at a position."""
        return int(self.isolate_emulator and number == 0)

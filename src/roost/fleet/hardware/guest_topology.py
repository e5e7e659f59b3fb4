"""`GuestTopology`: the NUMA cells that an instance asks for."""

from typing import Final, Literal

import msgspec

CpuPolicy = Literal["shared", "dedicated", "mixed"]
"""``dedicated``: each vCPU has a host CPU of its own. ``mixed``: some have. ``shared``: none has."""

ThreadPolicy = Literal["prefer", "isolate", "require"]
"""Whether dedicated vCPUs may (prefer), must (require) or must not (isolate) share a host core."""

SMALL: Final = -1
"""A page size: the smallest of the host cell."""
LARGE: Final = -2
"""A page size: any but the smallest, larger ones first."""
ANY: Final = -3
"""A page size: any, larger ones first."""


class GuestCell(msgspec.Struct, frozen=True):
    """One NUMA cell of a guest: how many of its vCPUs are ``shared``, the numbers of those that are
    ``dedicated``, ascending, and its memory in MiB."""

    id: int
    shared: int
    dedicated: tuple[int, ...]
    memory_mb: int

    @property
    def pinned(self) -> int:
        """The number of dedicated vCPUs."""
        return len(self.dedicated)


class GuestTopology(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of a guest, and what holds for all of them.

    ``page_size``: KiB, `SMALL`, `LARGE` or `ANY`; None if nothing is asked, so that memory is in the smallest
    pages. ``isolate_emulator``: emulator threads have a host CPU of their own, beside the first cell's.

    Source: ``InstanceNUMATopology`` of ``nova/objects/instance_numa.py``.
    """

    cells: tuple[GuestCell, ...]
    cpu_policy: CpuPolicy = "shared"
    thread_policy: ThreadPolicy = "prefer"
    page_size: int | None = None
    isolate_emulator: bool = False

    @property
    def pins(self) -> bool:
        """Whether any vCPU is dedicated by the policy. Then memory is not overcommitted either."""
        return self.cpu_policy != "shared"

    @property
    def shares(self) -> bool:
        """Whether vCPUs may be shared by the policy. Then allocation ratios limit them."""
        return self.cpu_policy != "dedicated"

    def reserved(self, number: int) -> int:
        """Host CPUs for emulator threads beside the cell at a position."""
        return int(self.isolate_emulator and number == 0)

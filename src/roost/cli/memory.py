"""How the process keeps memory that numpy has freed.

A decision on 10,000 hosts makes and drops arrays of 80 kB. By default glibc hands the top of its heap back
to the system each time and faults it in again at the next array, which took a third of a decision's time.
"""

import ctypes

_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3
_KEPT = 64 * 2**20
"""Bytes at the top of the heap that are kept instead of being handed back, and the size from which an
array is mapped by itself."""
_GROWN_BY = 2**20
"""Bytes that the heap grows by at least."""


def keep_freed_memory() -> None:
    """Have glibc keep what is freed; nothing happens with another C library."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_M_TRIM_THRESHOLD, _KEPT)
    mallopt(_M_TOP_PAD, _GROWN_BY)
    mallopt(_M_MMAP_THRESHOLD, _KEPT)

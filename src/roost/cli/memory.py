"""Keeps memory that numpy has freed in the process.

A decision on 10,000 hosts allocates and frees arrays of 80 kB. By default glibc returns the top of its heap
to the system each time. The page faults at the next array then took a third of a decision's time.
"""

import ctypes

_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3
_KEPT_BYTES = 64 * 2**20
"""Free bytes that glibc keeps at the top of the heap; also the size from which an array is mapped alone."""
_GROWTH_BYTES = 2**20
"""Least growth of the heap in bytes."""


def keep_freed_memory() -> None:
    """Have glibc keep freed memory. Does nothing with another C library."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    mallopt(_M_TOP_PAD, _GROWTH_BYTES)
    mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)

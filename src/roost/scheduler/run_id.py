"""Ids of scheduler runs: UUIDs of version 7, which begin with their time."""

import random
import time

_VERSION = 0x7 << 76
_VARIANT = 0x2 << 62


def new_run_id() -> str:
    """Return a new id, as a UUID in its usual form; 74 of its bits are random.

    The random bits keep ids apart and need not be secret: a system call for them would take longer than the
    rest of a record on its way to the queue.

    A run's id is a key in every table of the records. Ids in the order of time go to the end of the indexes.
    Random ids change a page of each index for each run, and most of the effort of a record is the writing of
    these pages.

    Source: RFC 9562, section 5.7.
    """
    apart = random.getrandbits(12) << 64 | random.getrandbits(62)
    digits = f"{time.time_ns() // 1_000_000 << 80 | _VERSION | _VARIANT | apart:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

"""The median time of a function."""

import time
from collections.abc import Callable

import numpy as np


def median_ms(work: Callable[[int], object], seconds: float, min_calls: int = 1) -> float:
    """Call ``work`` with the number of the call, from 0, for ``seconds`` and at least ``min_calls`` times.

    Returns the median time of a call in milliseconds.
    """
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < min_calls or time.perf_counter() < until:
        started = time.perf_counter()
        work(len(times))
        times.append(time.perf_counter() - started)
    return float(np.median(times)) * 1000

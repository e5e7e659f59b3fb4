"""The metrics of the process itself: memory, processor time, open files, versions."""

import os
import platform
import time
from pathlib import Path

import roost
from roost.process.metrics import catalogue as metrics

_PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessMetrics:
    """Sets the metrics of this process. ``number``: its number in the service."""

    def __init__(self, number: int) -> None:
        process = str(number)
        self._memory = metrics.RESIDENT_MEMORY.labels(process)
        self._files = metrics.OPEN_FDS.labels(process)
        self._cpu = metrics.CPU.labels(process)
        self._counted = 0.0
        metrics.START_TIME.labels(process).set(time.time())
        metrics.BUILD_INFO.labels(roost.__version__, platform.python_version()).set(1)

    def sample(self) -> None:
        """Set the metrics to the present values from /proc."""
        self._memory.set(int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE)
        self._files.set(sum(1 for _ in Path("/proc/self/fd").iterdir()))
        used = time.process_time()
        self._cpu.inc(used - self._counted)
        self._counted = used

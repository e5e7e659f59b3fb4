"""The publisher of a process's metrics, to files of prometheus_client's multiprocess mode."""

import asyncio
import contextlib
import os
import platform
import struct
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import structlog
from prometheus_client.multiprocess import mark_process_dead
from prometheus_client.utils import floatToGoString
from prometheus_client.values import MultiProcessValue

import roost
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.catalogue import CATALOGUE, AnyMetric
from roost.process.metrics.folder import ProcessNumber
from roost.process.metrics.instruments import Gauge, Histogram, start_counting, stop_counting

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


PUBLISH_SECONDS = 1.0
"""Seconds between two publications. What a killed process has counted since the last one is lost."""

_FILE_BYTES = {
    "counter": 2**18,
    "histogram": 2**21,
    **{f"gauge_live{how}": 2**16 for how in ("sum", "min")},
    "gauge_livemax": 2**18,
}
"""Files, each with its size in bytes."""

_EMPTY_HEADER = struct.pack("ii", 8, 0)
"""The header of a file without values: the number of bytes in use."""

_log = structlog.get_logger()


class Publisher:
    """Publishes the metrics of this process to a folder, under a number of its own.

    Raises:
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._claimed = ProcessNumber(folder)
        self.number = number = self._claimed.number
        # Removes the gauges of the process that had the number before.
        mark_process_dead(number, str(folder))  # type: ignore[no-untyped-call]
        for name, size in _FILE_BYTES.items():
            _allocate(folder / f"{name}_{number}.db", size)
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        self._value = MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]
        self._values: dict[tuple[str, ...], list[Any]] = {}
        self._published: dict[tuple[str, ...], tuple[float, ...]] = {}

    def publish(self) -> None:
        """Publish every number that has changed.

        Raises:
            OSError: a file cannot grow.
        """
        for metric in CATALOGUE:
            for labels, series in metric.series.items():
                numbers = series.numbers()
                key = (metric.name, *labels)
                before = self._published.get(key)
                if numbers == before or not numbers:
                    continue
                values = self._values.get(key)
                if values is None:
                    values = self._values[key] = self._open(metric, labels)
                if metric.kind == Gauge.kind:
                    values[0].set(numbers[0])
                else:
                    for value, now, then in zip(values, numbers, before or (0,) * len(numbers), strict=True):
                        # A value continues from that of the process that had the number before.
                        value.inc(now - then)
                self._published[key] = numbers

    def close(self) -> None:
        """Publish for the last time, take back the gauges, and release the number."""
        with contextlib.suppress(OSError):
            self.publish()
        self._value.close_all_files()
        mark_process_dead(self.number, str(self._folder))  # type: ignore[no-untyped-call]
        self._claimed.release()

    def _open(self, metric: AnyMetric, labels: tuple[str, ...]) -> list[Any]:
        """Return the values of a series in the files, in the order of its numbers."""
        name, names = metric.name, metric.label_names
        if isinstance(metric, Histogram):
            bounds = (*metric.bounds, float("inf"))
            buckets = [
                self._value(
                    "histogram",
                    name,
                    f"{name}_bucket",
                    (*names, "le"),
                    (*labels, floatToGoString(bound)),  # type: ignore[no-untyped-call]
                    metric.help,
                )
                for bound in bounds
            ]
            return [*buckets, self._value("histogram", name, f"{name}_sum", names, labels, metric.help)]
        if isinstance(metric, Gauge):
            mode = f"live{metric.across}"
            return [self._value("gauge", name, name, names, labels, metric.help, multiprocess_mode=mode)]
        return [self._value("counter", name.removesuffix("_total"), name, names, labels, metric.help)]


@contextlib.asynccontextmanager
async def publishing(folder: Path) -> AsyncIterator[None]:
    """Count, and publish to a folder every `PUBLISH_SECONDS`, during the context."""
    start_counting(CATALOGUE)
    publisher = Publisher(folder)
    process = ProcessMetrics(publisher.number)
    keeping = asyncio.create_task(_keep_publishing(publisher, process))
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait((keeping,))
        publisher.close()
        stop_counting()


async def _keep_publishing(publisher: Publisher, process: ProcessMetrics) -> None:
    failing = False
    while True:
        try:
            process.sample()
            publisher.publish()
        except Exception as error:  # without this line, values that no longer change would look alive
            if not failing:
                _log.warning("metrics cannot be published", error=repr(error))
            failing = True
        else:
            failing = False
        await asyncio.sleep(PUBLISH_SECONDS)


def _allocate(path: Path, size: int) -> None:
    """Make a file with all of its blocks: on a full disk, a write to a mapped hole would kill the process."""
    if path.exists():
        return
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        file.write(_EMPTY_HEADER)
    # In one step, so that a scrape never sees a file without its header.
    new.rename(path)

"""The instrumentation of a process: its metrics, its spans, and the watch on its event loop.

prometheus_client is imported only if metrics are on.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from roost.process import tracing
from roost.process.loop_watch import LoopWatch, watching
from roost.process.tracing import TracingOptions


@contextlib.contextmanager
def exposed(host: str, port: int | None) -> Iterator[Path | None]:
    """Serve metrics during the context, if a port is given. Yields the folder to publish to, or None.

    Raises:
        OperatorError: the address is taken, or not one of this machine.
    """
    if port is None:
        yield None
        return
    from roost.process.metrics.endpoint import exposed_metrics

    with exposed_metrics(host, port) as folder:
        yield folder


@contextlib.asynccontextmanager
async def counted(folder: Path | None) -> AsyncIterator[None]:
    """Count in this process, and publish to a folder, during the context. None: nothing is counted.

    Raises:
        OSError: the folder cannot be written.
    """
    if folder is None:
        yield
        return
    from roost.process.metrics.publisher import publishing

    async with publishing(folder):
        yield


@contextlib.asynccontextmanager
async def instrumented(folder: Path | None, traces: TracingOptions) -> AsyncIterator[LoopWatch]:
    """Count, trace, and watch the running event loop during the context. ``folder``: as of `counted`.

    Yields the watch, which measures once its `begin` is called.

    Raises:
        OSError: the folder cannot be written.
    """
    tracing.start(traces)
    try:
        async with counted(folder):
            with watching() as watch:
                yield watch
    finally:
        tracing.stop()

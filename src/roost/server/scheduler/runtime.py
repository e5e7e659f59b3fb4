"""Runs background tasks of a process beside its requests."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import structlog

_log = structlog.get_logger()


def end_process(_: BaseException | None) -> None:
    """End this worker process; its parent starts another one."""
    os.kill(os.getpid(), signal.SIGTERM)


class Runtime(NamedTuple):
    """The clock and the error handler that the background tasks of a process share.

    ``clock``: seconds since 1970. ``died``: called when a task ends that must not end, with its error, or
    with None if it returned.
    """

    clock: Callable[[], float] = time.time
    died: Callable[[BaseException | None], None] = end_process


RUNTIME = Runtime()
"""The default, for worker processes: the real clock, and the end of the process."""


def run_beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Run work as a task, which is cancelled when the stack is closed."""
    task = asyncio.create_task(work)

    async def end() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(end)
    return task


def run_for_ever(
    stack: AsyncExitStack,
    name: str,
    work: Coroutine[Any, Any, None],
    runtime: Runtime = RUNTIME,
) -> None:
    """Run work that must not end before the stack is closed. ``name``: names the task in the log."""
    task = run_beside(stack, work)

    def ended(task: "asyncio.Task[None]") -> None:
        if not task.cancelled():
            _log.error("a part of the process has died", part=name, exc_info=task.exception())
            runtime.died(task.exception())

    task.add_done_callback(ended)

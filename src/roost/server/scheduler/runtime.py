"""Runs the parts of a process beside its requests."""

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
    """What the parts of a process have in common.

    ``clock``: seconds since 1970. ``died``: called with the error when a part ends that must not end; None
    if it ended without one.
    """

    clock: Callable[[], float] = time.time
    died: Callable[[BaseException | None], None] = end_process


RUNTIME = Runtime()
"""That of a worker process."""


def run_beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Run work beside the requests until the stack is closed."""
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
    """Run work that must not end before the stack is closed. ``name``: of the part, for the log."""
    task = run_beside(stack, work)

    def ended(task: "asyncio.Task[None]") -> None:
        if not task.cancelled():
            _log.error("a part of the process has died", part=name, exc_info=task.exception())
            runtime.died(task.exception())

    task.add_done_callback(ended)

"""Calls the hook of maintenances: runs the command, or sends a request to the URL."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections import deque
from collections.abc import Iterable

import httpx

from roost.conductor.maintenance.hook import (
    CALL_VARIABLE,
    KEY_VARIABLE,
    HookCall,
    MaintenanceHook,
    MaintenanceOptions,
)
from roost.model.maintenance import HookResult
from roost.model.secrets import redacted_text
from roost.model.text import clean_text, fault_of
from roost.process.command import kill_group

LINES = 20
"""Last lines of the output of a call that are kept."""

MOST_OF_LINE = 500
"""Characters of a line that are kept at most."""

CHUNK = 65_536
"""Bytes of output that are read at once at most."""

END_SECONDS = 5.0
"""Seconds for which the output of a command that was killed is read on."""

STOPPED = "it was stopped"


def open_hook(options: MaintenanceOptions) -> MaintenanceHook | None:
    """Return the hook of the configuration; None: there is none. Raises `OperatorError`."""
    options.check()
    if options.command:
        return CommandHook(options.command, options.seconds)
    if options.url is not None:
        return UrlHook(options.url, options.seconds)
    return None


class _Calls:
    """The calls that are under way, each in a task that can be stopped."""

    def __init__(self) -> None:
        self._tasks: dict[HookCall, asyncio.Task[HookResult]] = {}

    async def call(self, call: HookCall) -> HookResult:
        """Call the hook, and return how that ended."""
        task = self._tasks[call] = asyncio.create_task(self._carry_out(call))
        try:
            await asyncio.wait([task])
        finally:
            # Cancelled, unless it has ended.
            task.cancel()
            self._tasks.pop(call, None)
        return HookResult(STOPPED) if task.cancelled() else task.result()

    async def stop(self, call: HookCall) -> None:
        """End a call that is under way."""
        task = self._tasks.get(call)
        if task is not None:
            task.cancel()

    async def _carry_out(self, call: HookCall) -> HookResult:
        raise NotImplementedError


class CommandHook(_Calls):
    """A hook that is a command. ``command``: program and arguments. ``seconds``: time limit of a call."""

    def __init__(self, command: tuple[str, ...], seconds: float) -> None:
        super().__init__()
        self._command = command
        self._seconds = seconds

    async def _carry_out(self, call: HookCall) -> HookResult:
        words = (*self._command, call.host, call.cell, call.maintenance)
        try:
            # A group of its own: what the command has started ends with it.
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=STDOUT,
                start_new_session=True,
                env={**os.environ, KEY_VARIABLE: call.idempotency_key, CALL_VARIABLE: str(call.number)},
            )
        except (OSError, ValueError) as error:
            return HookResult(f"{self._command[0]} cannot be run: {fault_of(error)}")
        output = _LastLines()
        reading = asyncio.create_task(output.read(process))
        try:
            async with asyncio.timeout(self._seconds):
                status = await process.wait()
        except TimeoutError:
            kill_group(process)
            await process.wait()
            await asyncio.wait([reading], timeout=END_SECONDS)
            return HookResult(f"it took longer than {self._seconds:g} s", None, output.text)
        except asyncio.CancelledError:
            kill_group(process)
            raise
        else:
            # What the command left running in the background may hold the output open.
            await asyncio.wait([reading], timeout=END_SECONDS)
            failure = None if status == 0 else f"it ended with {_said(status)}"
            return HookResult(failure, status, output.text)
        finally:
            reading.cancel()


def _said(status: int) -> str:
    """Return the exit status of a process in words; below 0 it is the number of a signal."""
    return f"status {status}" if status >= 0 else f"signal {-status}"


class _LastLines:
    """The last lines of the output of a process."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=LINES)
        self._begun = b""

    async def read(self, process: Process) -> None:
        """Read the output of a process to its end."""
        assert process.stdout is not None
        while chunk := await process.stdout.read(CHUNK):
            *whole, begun = (self._begun + chunk).split(b"\n")
            self._lines.extend(line[: 4 * MOST_OF_LINE] for line in whole)
            self._begun = begun[: 4 * MOST_OF_LINE]

    @property
    def text(self) -> str:
        """The last lines, cleaned."""
        lines = [*self._lines, *([self._begun] if self._begun else [])][-LINES:]
        return _cleaned(line.decode(errors="replace") for line in lines)


class UrlHook(_Calls):
    """A hook that is a URL. ``seconds``: time limit of a call."""

    def __init__(self, url: str, seconds: float) -> None:
        super().__init__()
        self._url = url
        self._seconds = seconds

    async def _carry_out(self, call: HookCall) -> HookResult:
        body = {
            "maintenance": call.maintenance,
            "host": call.host,
            "cell": call.cell,
            "call": call.number,
        }
        try:
            async with asyncio.timeout(self._seconds), httpx.AsyncClient(timeout=None) as client:
                headers = {"Idempotency-Key": call.idempotency_key}
                response = await client.post(self._url, json=body, headers=headers)
        except TimeoutError:
            return HookResult(f"it took longer than {self._seconds:g} s")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return HookResult(f"there is no answer: {fault_of(error)}")
        failure = None if response.is_success else f"it answered with status {response.status_code}"
        return HookResult(failure, response.status_code, _cleaned(response.text.splitlines()[-LINES:]))


def _cleaned(lines: Iterable[str]) -> str:
    return "\n".join(redacted_text(clean_text(line.rstrip("\r"), MOST_OF_LINE)) for line in lines)

"""Calls the hook of maintenances: runs the command, or sends a request to the URL."""

import asyncio

import httpx

from roost.conductor.maintenance.hook import (
    CALL_VARIABLE,
    KEY_VARIABLE,
    HookCall,
    MaintenanceHook,
    MaintenanceOptions,
)
from roost.model.maintenance import HookResult
from roost.model.text import fault_of
from roost.process.command import LINES, run_command, safe_output

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
        environment = {KEY_VARIABLE: call.idempotency_key, CALL_VARIABLE: str(call.number)}
        failure, status, output = await run_command(words, self._seconds, environment)
        return HookResult(None if failure is None else f"it {failure}", status, output)


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
        return HookResult(failure, response.status_code, safe_output(response.text.splitlines()[-LINES:]))

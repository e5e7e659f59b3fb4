"""The hook: a command without a shell, or a URL; time limits, failures, and the last lines of its output."""

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest

from roost.conductor.maintenance.hook import HookCall, MaintenanceOptions
from roost.conductor.maintenance.hook_calls import STOPPED, open_hook
from roost.model.errors import OperatorError
from roost.model.maintenance import HookResult
from roost.process.command import LINES
from roost.process.option_source import Setting, Source
from support.waiting import patience

CALL = HookCall("00000000-0000-4000-8000-000000000001", "host $(touch x); 'a", "cell1", 2)


def options(**named: str) -> MaintenanceOptions:
    settings = tuple(Setting("maintenance", name, value) for name, value in named.items())
    return Source((), settings).read(MaintenanceOptions)


def command_of(program: str, **named: str) -> MaintenanceOptions:
    """A hook that is a program in Python."""
    return options(hook_command=f"{shlex.quote(sys.executable)} -c {shlex.quote(program)} first", **named)


def called(given: MaintenanceOptions, call: HookCall = CALL) -> HookResult:
    hook = open_hook(given)
    assert hook is not None
    return asyncio.run(hook.call(call))


def test_a_command_has_the_call_as_its_last_arguments_and_no_shell() -> None:
    result = called(command_of("import json, sys; print(json.dumps(sys.argv[1:]))"))
    assert (result.failure, result.status) == (None, 0)
    assert json.loads(result.output) == ["first", CALL.host, CALL.cell, CALL.maintenance]
    assert not Path("x").exists()


def test_a_command_has_the_key_of_its_work_in_its_environment_and_each_call_has_the_same() -> None:
    program = "import os; print(os.environ['ROOST_MAINTENANCE_KEY'], os.environ['ROOST_MAINTENANCE_CALL'])"
    later = msgspec.structs.replace(CALL, number=3)
    first, second = (called(command_of(program), each) for each in (CALL, later))
    assert first.output == f"{CALL.idempotency_key} 2"
    assert second.output == f"{CALL.idempotency_key} 3"
    other = msgspec.structs.replace(CALL, host="another")
    assert other.idempotency_key != CALL.idempotency_key


def test_a_status_is_a_failure_and_the_last_lines_are_kept() -> None:
    result = called(command_of("import sys\nfor n in range(100): print('line', n)\nsys.exit('no image')"))
    assert (result.failure, result.status) == ("it ended with status 1", 1)
    assert result.output.splitlines() == [*(f"line {n}" for n in range(101 - LINES, 100)), "no image"]
    killed = called(command_of("import os; os.kill(os.getpid(), 9)"))
    assert (killed.failure, killed.status) == ("it ended with signal 9", -9)


def test_output_is_cleaned_and_secrets_in_it_are_hidden() -> None:
    result = called(
        command_of(r"import os; os.write(1, b'\xff\x00 http://me:secret@bmc/\r\n' + b'x' * 10**6)")
    )
    assert "secret" not in result.output and "\x00" not in result.output
    assert len(result.output) < 2_000


def test_what_takes_too_long_is_killed_with_all_that_it_has_started(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        f"open({str(file)!r}, 'w').write(str(child.pid))\n"
        "print('it begins', flush=True)\n"
        "time.sleep(1000)\n"
    )
    result = called(command_of(program, hook_seconds="3"))
    assert (result.failure, result.status) == ("it took longer than 3 s", None)
    assert result.output == "it begins"
    assert_ends(int(file.read_text()))


def assert_ends(pid: int) -> None:
    """Wait until a process is gone, or a zombie that nobody has waited for."""
    until = time.monotonic() + patience(30.0)
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} runs on")


def test_a_call_that_is_stopped_or_cancelled_ends_its_command(tmp_path: Path) -> None:
    program = "import os, sys, time; open(sys.argv[2], 'w').write(str(os.getpid())); time.sleep(1000)"
    hook = open_hook(command_of(program))
    assert hook is not None

    async def begun(file: Path) -> tuple[asyncio.Task[HookResult], HookCall]:
        call = HookCall("maintenance", str(file), "cell1", 1)
        task = asyncio.create_task(hook.call(call))
        async with asyncio.timeout(patience(60.0)):
            while not file.exists() or not file.read_text():
                await asyncio.sleep(0.02)
        return task, call

    async def run() -> None:
        task, call = await begun(tmp_path / "stopped")
        await hook.stop(call)
        assert await task == HookResult(STOPPED)
        await hook.stop(call)
        task, _ = await begun(tmp_path / "cancelled")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.1)

    asyncio.run(run())
    for name in ("stopped", "cancelled"):
        assert_ends(int((tmp_path / name).read_text()))


def test_a_command_that_cannot_be_run_is_a_failure() -> None:
    result = called(options(hook_command="/no/such/program --now"))
    assert result.failure is not None and "it cannot be run: /no/such/program: No such" in result.failure
    nul = called(options(hook_command=os.fspath(sys.executable)), HookCall("m", "a\x00b", "c", 1))
    assert nul.failure is not None and "cannot be run" in nul.failure


class _Handler(BaseHTTPRequestHandler):
    asked: Any = None
    key: str | None = None
    status = 200

    def do_POST(self) -> None:
        type(self).key = self.headers["idempotency-key"]
        type(self).asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"a line\nthe last line")

    def log_message(self, *_: object) -> None:
        pass


def with_server(status: int, play: Callable[[str], HookResult]) -> tuple[Any, HookResult]:
    handler = type("Handler", (_Handler,), {"status": status})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        return handler, play(f"http://127.0.0.1:{server.server_port}/done")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_url_gets_the_call_as_json_and_its_status_counts() -> None:
    handler, result = with_server(200, lambda url: called(options(hook_url=url)))
    assert result == HookResult(None, 200, "a line\nthe last line")
    assert handler.asked == {
        "maintenance": CALL.maintenance,
        "host": CALL.host,
        "cell": CALL.cell,
        "call": 2,
    }
    assert handler.key == CALL.idempotency_key
    _, refused = with_server(503, lambda url: called(options(hook_url=url)))
    assert (refused.failure, refused.status) == ("it answered with status 503", 503)
    gone = called(options(hook_url="http://127.0.0.1:9/"))
    assert gone.failure is not None and gone.failure.startswith("there is no answer: ")


def test_there_is_one_hook_at_most_and_a_wrong_one_is_refused_at_the_start() -> None:
    assert open_hook(options()) is None
    with pytest.raises(OperatorError, match="there is one hook"):
        open_hook(options(hook_command="/bin/true", hook_url="http://a"))
    with pytest.raises(OperatorError, match="no URL"):
        open_hook(options(hook_url="ftp://a"))
    with pytest.raises(OperatorError, match=r"hook_command.*cannot be split"):
        options(hook_command="'open")

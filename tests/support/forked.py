"""Runs `roost` commands as processes that need no time for imports: forks of `support.fork_server`.

Most of the time of a command is the import of libraries, and tests run hundreds of them. Tests of the start
itself, of the guides and of the packages start `ROOST` as a user does.
"""

import atexit
import functools
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from support.waiting import Deadline

ROOST = Path(sys.executable).with_name("roost")
START_SECONDS = 120.0


class Forked:
    """A running `roost` command, with what tests need of `subprocess.Popen`.

    ``stdout``, ``stderr``: files for its output, None: those of this process. ``start_new_session``: as the
    first process of a session and of a process group.
    """

    def __init__(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        stdout: IO[bytes] | None = None,
        stderr: IO[bytes] | None = None,
        start_new_session: bool = False,
    ) -> None:
        self.args = [str(ROOST), *map(str, arguments)]
        self.returncode: int | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(_server())
        asked = {
            "command": self.args,
            "environment": dict(os.environ if env is None else env),
            "folder": str(Path.cwd()),
            "session": start_new_session,
        }
        output, errors = (None if file is None else file.fileno() for file in (stdout, stderr))
        streams = [0, 1 if output is None else output, 2 if errors is None else errors]
        socket.send_fds(self._connection, [b"{"], streams)
        self._connection.sendall(json.dumps(asked).encode()[1:] + b"\n")
        self._connection.settimeout(START_SECONDS)
        self._said = b""
        self.pid = self._number()

    def poll(self) -> int | None:
        """Return the exit status, None while it runs."""
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return the exit status, less than 0 for a signal. Raises `TimeoutExpired`."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = self._number()
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        while b"\n" not in self._said:
            part = self._connection.recv(64)
            assert part, "the fork server has ended"
            self._said += part
        line, _, self._said = self._said.partition(b"\n")
        return int(line)


def run_forked(
    *arguments: str | Path, seconds: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command and wait for its end. Raises `TimeoutExpired`, and then kills it.

    ``seconds``: those that it has on a quiet machine.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = Forked(*arguments, env=env, stdout=output, stderr=errors)
        deadline = Deadline(seconds)
        status = None
        while status is None:
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                if deadline.passed:
                    process.kill()
                    process.wait()
                    raise
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(process.args, status, *texts)


@functools.cache
def _server() -> str:
    """The address of this process's fork server, which starts at the first call."""
    address = f"\0roost-tests-{secrets.token_hex(8)}"
    ours, theirs = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as listening, theirs:
        listening.bind(address)
        listening.listen(64)
        descriptors = (listening.fileno(), theirs.fileno())
        script = Path(__file__).with_name("fork_server.py")
        server = subprocess.Popen(
            [sys.executable, "-P", str(script), *map(str, descriptors)], pass_fds=descriptors
        )

    def stop() -> None:
        ours.close()
        server.wait()

    atexit.register(stop)
    return address

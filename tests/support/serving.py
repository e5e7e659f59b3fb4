"""``roost serve`` as a process, on any database."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from roost.bench.loopback import free_port
from roost.bench.server_process import die_with_parent
from support.forked import ROOST, Forked, run_forked
from support.waiting import Deadline

HEADERS = {
    "x-auth-token": "admin",
    "openstack-api-version": "placement 1.39",
    "content-type": "application/json",
}
ENVIRONMENT = {**os.environ, "OS_API__AUTH_STRATEGY": "noauth2"}
SECONDS = 120.0
"""Seconds for what takes one or two on a quiet machine: only a defect takes longer."""


def roost(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a roost command and wait for its end."""
    return run_forked(*arguments, seconds=SECONDS, env=ENVIRONMENT)


def _started_anew(*command: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([ROOST, *command], preexec_fn=die_with_parent, **options)


def children(pid: int) -> set[int]:
    """The ids of the processes that the main thread of a process has started and that have not ended."""
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


class Serving:
    """A running `roost serve` in a process group of its own.

    ``log``: the file of its output. ``settings``: options as GROUP.OPTION=VALUE. ``arguments``: further ones.
    ``port``: None: a free one. ``waits``: until it answers on its port. ``fresh``: as a user starts it, with
    an interpreter of its own, and not as a fork.
    """

    def __init__(
        self,
        url: str,
        log: Path,
        workers: int = 1,
        settings: Sequence[str] = (),
        arguments: Sequence[str] = (),
        port: int | None = None,
        environment: Mapping[str, str] = ENVIRONMENT,
        waits: bool = True,
        fresh: bool = False,
    ) -> None:
        self.port = port = port or free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._log = log
        command = ["serve", "--port", str(port), "--database", url, "--workers", str(workers)]
        command += [*arguments, *(part for setting in settings for part in ("--set", setting))]
        with log.open("ab") as file:
            start = partial(_started_anew if fresh else Forked, *command)
            self._process = start(env=environment, stderr=file, start_new_session=True)
        until = Deadline(SECONDS)
        while waits:
            with contextlib.suppress(httpx.TransportError):
                if self.ask("GET", "/").status_code == 200:
                    return
            if until.passed or self._process.poll() is not None:
                self.end()
                raise AssertionError(f"the server does not answer: {self.said()}")
            time.sleep(0.05)

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Send a request on a new connection, which any worker may accept."""
        # Not verified, as nothing is encrypted: loading certificates takes longer than most answers.
        with httpx.Client(base_url=self.url, headers=HEADERS, timeout=SECONDS, verify=False) as client:
            return client.request(method, path, json=body)

    @property
    def pid(self) -> int:
        """The id of its first process, the parent of the workers."""
        return self._process.pid

    @property
    def workers(self) -> set[int]:
        """The ids of the processes of its workers."""
        return children(self.pid)

    def send_signal(self, number: int) -> None:
        """Send a signal to its first process."""
        self._process.send_signal(number)

    def said(self) -> str:
        """What it wrote to standard error."""
        return self._log.read_text()

    def terminate(self) -> None:
        """Send SIGTERM to the first process, which stops the others."""
        self._process.terminate()

    def wait(self) -> int:
        """Wait for its end; return the exit status."""
        return self._process.wait(SECONDS)

    def end(self, number: int = signal.SIGTERM) -> None:
        """Send a signal to all its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        self._process.wait(SECONDS)
